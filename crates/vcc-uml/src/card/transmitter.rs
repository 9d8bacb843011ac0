//! The transmitter: sends one frame after the other at the wire's rate.

use std::collections::VecDeque;

const BITS_PER_BYTE: u64 = 8;
const NS_PER_S: u64 = 1_000_000_000;

pub(super) struct Transmitter {
    rate_bps: u64,
    busy_until_ns: u64,
    /// Frames whose first bit has not left, with the time when it will.
    leaving: VecDeque<(u64, Vec<u8>)>,
}

impl Transmitter {
    pub fn new(rate_bps: u64) -> Self {
        Self { rate_bps, busy_until_ns: 0, leaving: VecDeque::new() }
    }

    /// Queues a frame. Returns the time when its last bit has left.
    pub fn send(&mut self, now_ns: u64, frame: Vec<u8>) -> u64 {
        let start_ns = self.busy_until_ns.max(now_ns);
        let took_ns = (frame.len() as u64 * BITS_PER_BYTE * NS_PER_S).div_ceil(self.rate_bps);
        self.busy_until_ns = start_ns + took_ns;
        self.leaving.push_back((start_ns, frame));
        self.busy_until_ns
    }

    pub fn busy_until_ns(&self) -> u64 {
        self.busy_until_ns
    }

    /// The next frame whose first bit leaves before `end_ns`.
    pub fn next_before(&mut self, end_ns: u64) -> Option<(u64, Vec<u8>)> {
        self.leaving.front().filter(|(start_ns, _)| *start_ns < end_ns)?;
        self.leaving.pop_front()
    }

    pub fn next_ns(&self) -> Option<u64> {
        self.leaving.front().map(|(start_ns, _)| *start_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_leave_one_after_the_other() {
        let mut transmitter = Transmitter::new(1_000_000_000);
        assert_eq!(transmitter.send(100, vec![0; 125]), 1100);
        assert_eq!(transmitter.send(200, vec![0; 250]), 3100, "waits for the first");
        assert_eq!(transmitter.send(5000, vec![0; 125]), 6000, "an idle wire");
        assert_eq!(transmitter.next_before(100), None);
        assert_eq!(transmitter.next_before(1101).map(|(at_ns, _)| at_ns), Some(100));
        assert_eq!(transmitter.next_before(1101).map(|(at_ns, _)| at_ns), Some(1100));
        assert_eq!(transmitter.next_before(1101), None);
        assert_eq!(transmitter.next_ns(), Some(5000));
    }
}
