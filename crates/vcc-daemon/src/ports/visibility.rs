//! Whether a port sees what passes its device.

/// Packets of the device, and segments that vcc counted there, since both began to count.
#[derive(Clone, Copy)]
struct Sample {
    packets: u64,
    /// Segments by all counters of the port.
    counted: u64,
}

/// A packet that vcc sees belongs to a flow, or is counted. So a port without flows whose counters
/// stand still while packets pass sees none of them.
#[derive(Default)]
pub(super) struct Visibility {
    last: Option<Sample>,
    had_flows: bool,
    /// Packets that passed since vcc saw one.
    unseen: u64,
}

/// Fewer packets may have passed between the reads of the two counts.
const BLIND_PACKETS: u64 = 100;

impl Visibility {
    /// Call this more often than once a second, for which a flow is kept after its end.
    pub(super) fn note_flows(&mut self, flows: u32) {
        self.had_flows |= flows > 0;
    }

    /// The packets have to be read before the counters.
    pub(super) fn compare(&mut self, packets: u64, counted: u64) {
        let last = self.last.replace(Sample { packets, counted });
        let passed = last
            .filter(|last| !self.had_flows && last.counted == counted)
            .and_then(|last| packets.checked_sub(last.packets));
        self.unseen = passed.map_or(0, |passed| self.unseen + passed);
        self.had_flows = false;
    }

    /// The packets that passed since vcc saw one, if it sees none.
    pub(super) fn unseen(&self) -> Option<u64> {
        (self.unseen >= BLIND_PACKETS).then_some(self.unseen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_are_neither_counted_nor_of_a_flow_are_unseen() {
        let mut visibility = Visibility::default();
        visibility.compare(1000, 7);
        assert_eq!(visibility.unseen(), None, "nobody knows what passed before");
        visibility.compare(1060, 7);
        assert_eq!(visibility.unseen(), None, "too few to tell");
        visibility.compare(1120, 7);
        assert_eq!(visibility.unseen(), Some(120));
        visibility.compare(1121, 8);
        assert_eq!(visibility.unseen(), None, "one is enough");
    }

    #[test]
    fn flows_are_seen() {
        let mut visibility = Visibility::default();
        visibility.compare(0, 0);
        visibility.note_flows(1);
        visibility.note_flows(0);
        visibility.compare(1000, 0);
        assert_eq!(visibility.unseen(), None);
        visibility.compare(2000, 0);
        assert_eq!(visibility.unseen(), Some(1000), "they have ended");
    }

    #[test]
    fn counters_of_another_device_begin_anew() {
        let mut visibility = Visibility::default();
        visibility.compare(5000, 3);
        visibility.compare(10, 3);
        assert_eq!(visibility.unseen(), None);
    }
}
