//! One half of a pair: the CPU cost of some traffic, over all of its turns.

use crate::base::meter::{Reading, Usage};
use vcc_port::RunTime;

/// With a smaller share of the offered load the machine was too slow.
const LEAST_SHARE: f64 = 0.98;
/// Beyond this share, other processes affect caches and run queues.
const MOST_STRANGERS: f64 = 0.1;

/// Counters at one time.
pub struct Mark {
    pub at_ns: u64,
    /// The run time of vcc's BPF programs, as far as it was counted.
    pub programs: RunTime,
    pub received_bytes: u64,
    pub reading: Reading,
}

#[derive(Default)]
pub struct Half {
    pub usage: Usage,
    pub seconds: f64,
    pub received_bytes: u64,
    /// The run time of vcc's BPF programs, as far as it was counted.
    pub programs: RunTime,
    /// The reasons why the half is not valid.
    pub doubts: Vec<String>,
}

impl Half {
    /// A turn from one time to another belongs to it.
    pub fn add(&mut self, from: &Mark, to: &Mark) {
        self.usage += from.reading.until(&to.reading);
        self.seconds += (to.at_ns - from.at_ns) as f64 / 1e9;
        self.received_bytes += to.received_bytes - from.received_bytes;
        self.programs = self.programs + (to.programs - from.programs);
    }

    pub fn goodput_mbps(&self) -> f64 {
        self.received_bytes as f64 * 8.0 / self.seconds / 1e6
    }

    pub fn cpu_s_per_gb(&self) -> f64 {
        self.usage.seconds() * 1e9 / self.received_bytes as f64
    }

    /// Why it is not valid, given the offered load of its flows, if that is limited.
    pub fn doubts(&self, wanted_bytes_per_s: Option<f64>) -> Vec<String> {
        let mut doubts = Vec::new();
        let share = |wanted: f64| self.received_bytes as f64 / (wanted * self.seconds);
        let share = wanted_bytes_per_s.map_or(1.0, share);
        if share < LEAST_SHARE {
            let percent = share * 100.0;
            doubts.push(format!(
                "goodput is {percent:.1} % of the offered load: the machine is too slow or too busy"
            ));
        }
        let strangers = self.usage.strangers_share();
        if strangers > MOST_STRANGERS {
            doubts.push(format!("other processes took {:.0} % of the CPU", strangers * 100.0));
        }
        doubts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_is_doubted_for_little_traffic_and_for_strangers() {
        let half = |received_bytes, strangers_s| Half {
            usage: Usage { capacity_s: 20.0, busy_s: 15.0, own_s: 1.0, strangers_s },
            seconds: 10.0,
            received_bytes,
            ..Half::default()
        };
        assert!(half(99, 1.0).doubts(Some(10.0)).is_empty());
        assert!(half(97, 1.0).doubts(None).is_empty());
        assert!(half(97, 1.0).doubts(Some(10.0))[0].contains("97.0 %"));
        assert!(half(99, 12.0).doubts(Some(10.0))[0].contains("60 %"));
    }
}
