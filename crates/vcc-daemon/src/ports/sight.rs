//! Whether a port sees what passes its device.

/// What passed the device, and what vcc said of it, since both began to count.
#[derive(Clone, Copy)]
struct Sample {
    packets: u64,
    /// Segments by all counters of the port.
    counted: u64,
}

/// A packet that vcc sees belongs to a flow, or is counted. So a port without flows whose counters
/// stand still while packets pass sees none of them.
#[derive(Default)]
pub(super) struct Sight {
    last: Option<Sample>,
    had_flows: bool,
    /// Packets that passed since vcc saw one.
    unseen: u64,
}

/// Fewer may be packets that passed between the reads of the two counts.
const BLIND_PACKETS: u64 = 100;

impl Sight {
    /// To be called more often than a flow is kept after its end, which is a second.
    pub(super) fn has_flows(&mut self, flows: u32) {
        self.had_flows |= flows > 0;
    }

    /// The packets have to be read before the counters.
    pub(super) fn look(&mut self, packets: u64, counted: u64) {
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
        let mut sight = Sight::default();
        sight.look(1000, 7);
        assert_eq!(sight.unseen(), None, "nobody knows what passed before");
        sight.look(1060, 7);
        assert_eq!(sight.unseen(), None, "too few to tell");
        sight.look(1120, 7);
        assert_eq!(sight.unseen(), Some(120));
        sight.look(1121, 8);
        assert_eq!(sight.unseen(), None, "one is enough");
    }

    #[test]
    fn flows_are_seen() {
        let mut sight = Sight::default();
        sight.look(0, 0);
        sight.has_flows(1);
        sight.has_flows(0);
        sight.look(1000, 0);
        assert_eq!(sight.unseen(), None);
        sight.look(2000, 0);
        assert_eq!(sight.unseen(), Some(1000), "they have ended");
    }

    #[test]
    fn counters_of_another_device_begin_anew() {
        let mut sight = Sight::default();
        sight.look(5000, 3);
        sight.look(10, 3);
        assert_eq!(sight.unseen(), None);
    }
}
