//! A plain first-in first-out queue with a limit in bytes.

use super::{Arrival, Queue, QueueSpec, Verdict, has_room};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TailDropSpec {
    pub limit_bytes: u64,
}

impl QueueSpec for TailDropSpec {
    fn build(&self, _rate_bps: u64, _seed: u64) -> Result<Box<dyn Queue>, String> {
        Ok(Box::new(TailDrop { limit_bytes: self.limit_bytes }))
    }
}

struct TailDrop {
    limit_bytes: u64,
}

impl Queue for TailDrop {
    fn admit(&mut self, arrival: &Arrival) -> Verdict {
        if has_room(arrival, self.limit_bytes) { Verdict::Accept } else { Verdict::DropFull }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_fits_and_not_a_byte_more() {
        let mut queue = TailDropSpec { limit_bytes: 3000 }.build(1, 0).unwrap();
        let mut admit = |backlog_bytes| {
            queue.admit(&Arrival {
                now_ns: 0,
                frame_bytes: 1500,
                backlog_bytes,
                idle_since_ns: None,
                ecn_capable: true,
            })
        };
        assert_eq!(admit(0), Verdict::Accept);
        assert_eq!(admit(1500), Verdict::Accept);
        assert_eq!(admit(1501), Verdict::DropFull);
    }
}
