//! What a bad path does to frames besides delaying and queueing them: it loses, repeats and changes
//! them, lets them overtake each other, and stands still for a moment. As if all of that happened on
//! the last link, where order and times of the others do not depend on it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use vcc_net::random::SplitMix64;

use crate::{Delivery, HostId};

/// Shares are in thousandths of the frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Impairments {
    pub loss_permille: u32,
    /// The second one follows at once, or as late as a reordered one.
    pub duplicate_permille: u32,
    /// It arrives later by up to `late_max_ns`.
    pub reorder_permille: u32,
    pub late_max_ns: u64,
    /// One bit behind the Ethernet header is another.
    pub corrupt_permille: u32,
    /// About this often, the path stands still for `spike_ns` and then releases all frames; 0: never.
    pub spike_every_ns: u64,
    pub spike_ns: u64,
}

const ETHERNET_BYTES: usize = 14;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Late {
    due_ns: u64,
    /// Frames of the same time stay in order.
    order: u64,
    host: HostId,
    frame: Vec<u8>,
}

/// Frames that have arrived but for what happens to them here.
pub(super) struct Impairer {
    spec: Impairments,
    random: SplitMix64,
    late: BinaryHeap<Reverse<Late>>,
    order: u64,
    /// When the path stands still next, or does now, and when it moves again.
    spike_ns: u64,
    spike_end_ns: u64,
}

impl Impairer {
    pub fn new(spec: Impairments, seed: u64) -> Self {
        let mut impairer = Self {
            spec,
            random: SplitMix64::new(seed),
            late: BinaryHeap::new(),
            order: 0,
            spike_ns: u64::MAX,
            spike_end_ns: 0,
        };
        impairer.plan_spike(0);
        impairer
    }

    pub fn next_ns(&self) -> Option<u64> {
        self.late.peek().map(|Reverse(late)| late.due_ns)
    }

    /// The frame that is next.
    pub fn next(&mut self) -> Option<Delivery> {
        let Reverse(Late { due_ns, host, frame, .. }) = self.late.pop()?;
        Some(Delivery { host, due_ns, frame })
    }

    /// A frame has arrived. Returns it if it is lost.
    pub fn arrive(&mut self, host: HostId, now_ns: u64, mut frame: Vec<u8>) -> Option<Vec<u8>> {
        if self.happens(self.spec.loss_permille) {
            return Some(frame);
        }
        if self.happens(self.spec.duplicate_permille) {
            let due_ns = self.due_ns(now_ns);
            self.keep(host, due_ns, frame.clone());
        }
        if self.happens(self.spec.corrupt_permille) {
            self.corrupt(&mut frame);
        }
        let due_ns = self.due_ns(now_ns);
        self.keep(host, due_ns, frame);
        None
    }

    fn happens(&mut self, permille: u32) -> bool {
        permille > 0 && self.random.next_u32() % 1000 < permille
    }

    fn corrupt(&mut self, frame: &mut [u8]) {
        let bits = frame.len().saturating_sub(ETHERNET_BYTES) * 8;
        if bits > 0 {
            let bit = self.random.next_u64() as usize % bits;
            frame[ETHERNET_BYTES + bit / 8] ^= 1 << (bit % 8);
        }
    }

    fn due_ns(&mut self, now_ns: u64) -> u64 {
        let late_ns = if self.happens(self.spec.reorder_permille) {
            self.random.next_u64() % (self.spec.late_max_ns + 1)
        } else {
            0
        };
        while self.spike_end_ns <= now_ns && self.spike_ns <= now_ns {
            self.spike_end_ns = self.spike_ns + self.spec.spike_ns;
            self.plan_spike(self.spike_end_ns);
        }
        now_ns.max(self.spike_end_ns) + late_ns
    }

    fn plan_spike(&mut self, from_ns: u64) {
        self.spike_ns = match self.spec.spike_every_ns {
            0 => u64::MAX,
            every_ns => from_ns + self.random.around(every_ns),
        };
    }

    fn keep(&mut self, host: HostId, due_ns: u64, frame: Vec<u8>) {
        self.late.push(Reverse(Late { due_ns, order: self.order, host, frame }));
        self.order += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Frames a millisecond apart, each of which begins with its number behind the header.
    fn through(spec: Impairments, frames: u16) -> Vec<(u64, Vec<u8>)> {
        let mut impairer = Impairer::new(spec, 1);
        let mut out = Vec::new();
        for number in 0..frames {
            let now_ns = u64::from(number) * MS;
            while impairer.next_ns().is_some_and(|due_ns| due_ns < now_ns) {
                out.extend(impairer.next().map(|it| (it.due_ns, it.frame)));
            }
            let frame = [&[0; ETHERNET_BYTES][..], &number.to_be_bytes(), &[0; 100]].concat();
            impairer.arrive(0, now_ns, frame);
        }
        out.extend(std::iter::from_fn(|| impairer.next()).map(|it| (it.due_ns, it.frame)));
        assert!(out.is_sorted_by_key(|(due_ns, _)| *due_ns));
        out
    }

    fn number(frame: &[u8]) -> u16 {
        u16::from_be_bytes([frame[ETHERNET_BYTES], frame[ETHERNET_BYTES + 1]])
    }

    #[test]
    fn a_path_without_impairments_changes_nothing() {
        let out = through(Impairments::default(), 1000);
        let expected = (0..1000).map(|number| (u64::from(number) * MS, number));
        assert!(out.iter().map(|(due_ns, frame)| (*due_ns, number(frame))).eq(expected));
    }

    #[test]
    fn each_impairment_takes_its_share() {
        let lossy = through(Impairments { loss_permille: 100, ..Impairments::default() }, 10_000);
        assert!((8_900..9_100).contains(&lossy.len()), "{}", lossy.len());
        let twice =
            through(Impairments { duplicate_permille: 100, ..Impairments::default() }, 10_000);
        assert!((10_900..11_100).contains(&twice.len()), "{}", twice.len());
        let late_max_ns = 5 * MS;
        let spec = Impairments { reorder_permille: 100, late_max_ns, ..Impairments::default() };
        let late = through(spec, 10_000);
        let is_late = |(due_ns, frame): &&(u64, Vec<u8>)| {
            let late_ns = due_ns - u64::from(number(frame)) * MS;
            assert!(late_ns <= late_max_ns);
            late_ns > 0
        };
        assert!((900..1_100).contains(&late.iter().filter(is_late).count()));
        assert!(!late.is_sorted_by_key(|(_, frame)| number(frame)));
        let spec = Impairments { corrupt_permille: 1000, ..Impairments::default() };
        for (sent, (_, frame)) in through(spec, 1000).iter().enumerate() {
            let sent = [&[0; ETHERNET_BYTES][..], &(sent as u16).to_be_bytes(), &[0; 100]].concat();
            let flipped = sent.iter().zip(frame).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
            assert_eq!((flipped, &frame[..ETHERNET_BYTES]), (1, &sent[..ETHERNET_BYTES]));
        }
    }

    #[test]
    fn what_waits_for_a_path_that_stands_still_comes_in_order_at_its_end() {
        let (spike_every_ns, spike_ns) = (100 * MS, 20 * MS);
        let spec = Impairments { spike_every_ns, spike_ns, ..Impairments::default() };
        let out = through(spec, 10_000);
        assert!(out.iter().map(|(_, frame)| number(frame)).eq(0..10_000));
        let waited = out.iter().filter(|(at_ns, frame)| *at_ns > u64::from(number(frame)) * MS);
        // 20 ms in each 120.
        assert!((1_400..1_900).contains(&waited.count()));
    }
}
