//! One threshold on the instantaneous queue (Alizadeh et al., "Data Center TCP", 3.1): at or
//! above it a frame that can be marked is marked, and one that cannot is dropped. So do switches
//! with WRED/ECN and one threshold for both, and it is what starves flows without ECN (AC/DC, 5.1).

use super::{Arrival, Queue, QueueSpec, Verdict, has_room};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThresholdSpec {
    pub threshold_bytes: u64,
    pub limit_bytes: u64,
}

impl QueueSpec for ThresholdSpec {
    fn build(&self, _rate_bps: u64, _seed: u64) -> Result<Box<dyn Queue>, String> {
        if self.threshold_bytes > self.limit_bytes {
            return Err(format!(
                "threshold_bytes {} lies above limit_bytes {}: no frame would ever be marked",
                self.threshold_bytes, self.limit_bytes
            ));
        }
        Ok(Box::new(Threshold { spec: self.clone() }))
    }
}

struct Threshold {
    spec: ThresholdSpec,
}

impl Queue for Threshold {
    fn admit(&mut self, arrival: &Arrival) -> Verdict {
        if !has_room(arrival, self.spec.limit_bytes) {
            Verdict::DropFull
        } else if arrival.backlog_bytes < self.spec.threshold_bytes {
            Verdict::Accept
        } else if arrival.ecn_capable {
            Verdict::Mark
        } else {
            Verdict::DropEarly
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_at_the_threshold_and_drops_what_cannot_be_marked() {
        let spec = ThresholdSpec { threshold_bytes: 30_000, limit_bytes: 100_000 };
        let mut queue = spec.build(1, 0).unwrap();
        let mut admit = |backlog_bytes, ecn_capable| {
            queue.admit(&Arrival {
                now_ns: 0,
                frame_bytes: 1514,
                backlog_bytes,
                idle_since_ns: None,
                ecn_capable,
            })
        };
        assert_eq!(admit(29_999, true), Verdict::Accept);
        assert_eq!(admit(29_999, false), Verdict::Accept);
        assert_eq!(admit(30_000, true), Verdict::Mark);
        assert_eq!(admit(30_000, false), Verdict::DropEarly);
        assert_eq!(admit(98_487, true), Verdict::DropFull);
    }

    #[test]
    fn a_threshold_above_the_limit_is_refused() {
        let error = ThresholdSpec { threshold_bytes: 2, limit_bytes: 1 }.build(1, 0).err();
        assert!(error.unwrap().contains("threshold_bytes 2 lies above limit_bytes 1"));
    }
}
