//! The memory of a switch, which all its queues share. None may have more than `alpha` times what
//! is free (Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet
//! Switches", 1998): one congested port alone comes to `alpha / (1 + alpha)` of all, and leaves the
//! rest to those that are congested next.
//!
//! A discipline still decides about marks and early drops. The frame that is being sent is not in
//! memory, nor in the discipline's backlog.

use super::queue::Arrival;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug, Clone, PartialEq)]
pub struct MemorySpec {
    pub bytes: u64,
    pub alpha: f64,
}

impl MemorySpec {
    pub(super) fn build(&self, switches: usize) -> Vec<Memory> {
        let memory = || Memory { spec: self.clone(), used_bytes: 0, waiting: BinaryHeap::new() };
        (0..switches).map(|_| memory()).collect()
    }
}

#[derive(Debug)]
pub(super) struct Memory {
    spec: MemorySpec,
    used_bytes: u64,
    /// Frames of all queues: when each will start to be sent, and its length.
    waiting: BinaryHeap<Reverse<(u64, u64)>>,
}

impl Memory {
    /// Room for a frame that arrives at one of the queues and waits there until `start_ns`; false
    /// if there is none.
    pub fn take(&mut self, arrival: &Arrival, start_ns: u64) -> bool {
        self.free_what_started(arrival.now_ns);
        let free_bytes = self.spec.bytes - self.used_bytes;
        let most_bytes = self.spec.alpha * free_bytes as f64;
        let queue_bytes = arrival.backlog_bytes + arrival.frame_bytes;
        let has_room = arrival.frame_bytes <= free_bytes && queue_bytes as f64 <= most_bytes;
        if has_room {
            self.used_bytes += arrival.frame_bytes;
            self.waiting.push(Reverse((start_ns, arrival.frame_bytes)));
        }
        has_room
    }

    fn free_what_started(&mut self, now_ns: u64) {
        while let Some(&Reverse((start_ns, frame_bytes))) = self.waiting.peek() {
            if start_ns > now_ns {
                break;
            }
            self.waiting.pop();
            self.used_bytes -= frame_bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vcc_net::random::SplitMix64;

    const FRAME_BYTES: u64 = 1000;

    fn memory(bytes: u64, alpha: f64) -> Memory {
        MemorySpec { bytes, alpha }.build(1).remove(0)
    }

    fn arrival(now_ns: u64, backlog_bytes: u64) -> Arrival {
        Arrival {
            now_ns,
            frame_bytes: FRAME_BYTES,
            backlog_bytes,
            idle_since_ns: None,
            ecn_capable: false,
        }
    }

    /// Fills a queue until it is refused more; what it then has.
    fn fill(memory: &mut Memory, mut backlog_bytes: u64) -> u64 {
        while memory.take(&arrival(0, backlog_bytes), 1_000) {
            backlog_bytes += FRAME_BYTES;
        }
        backlog_bytes
    }

    #[test]
    fn one_congested_port_comes_to_its_share_of_all() {
        for (alpha, expected_bytes) in [(0.5, 30_000), (1.0, 45_000), (2.0, 60_000), (8.0, 80_000)]
        {
            assert_eq!(fill(&mut memory(90_000, alpha), 0), expected_bytes, "alpha {alpha}");
        }
    }

    /// With alpha 1 a greedy queue leaves half, and the next one gets half of that; the first then
    /// exceeds its limit, and gets nothing until it has drained below it.
    #[test]
    fn a_second_congested_port_finds_room() {
        let mut memory = memory(90_000, 1.0);
        let first_bytes = fill(&mut memory, 0);
        let second_bytes = fill(&mut memory, 0);
        assert_eq!((first_bytes, second_bytes), (45_000, 23_000));
        assert_eq!(fill(&mut memory, first_bytes), first_bytes);
    }

    #[test]
    fn room_comes_back_when_a_frame_starts_to_be_sent() {
        let mut memory = memory(2_000, 1.0);
        assert!(memory.take(&arrival(0, 0), 500));
        assert!(memory.take(&arrival(0, 0), 800));
        assert!(!memory.take(&arrival(499, 0), 900));
        assert!(memory.take(&arrival(500, 0), 900));
        assert_eq!(memory.used_bytes, 2_000);
    }

    /// For random arrivals, used bytes equal queued bytes and never exceed the memory.
    #[test]
    fn bytes_are_conserved() {
        let mut memory = memory(15_000, 2.0);
        let mut random = SplitMix64::new(5);
        let (mut now_ns, mut refused) = (0, 0);
        for _ in 0..10_000 {
            now_ns += random.next_u64() % 100;
            let frame_bytes = 60 + random.next_u64() % 1455;
            let start_ns = now_ns + 1 + random.next_u64() % 3_000;
            let arrival = Arrival { frame_bytes, ..arrival(now_ns, 0) };
            refused += u64::from(!memory.take(&arrival, start_ns));
            let waiting_bytes: u64 = memory.waiting.iter().map(|Reverse((_, bytes))| bytes).sum();
            assert_eq!(memory.used_bytes, waiting_bytes);
            assert!(memory.used_bytes <= 15_000);
        }
        assert!(refused > 0);
        memory.free_what_started(u64::MAX);
        assert_eq!((memory.used_bytes, memory.waiting.len()), (0, 0));
    }
}
