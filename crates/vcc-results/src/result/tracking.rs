//! Two windows of one connection next to each other: the guest's own, and the one that vcc computes
//! from outside (AC/DC, figure 9). Each comes as a series of its own, in the order of time; two
//! values belong together if the same bytes had been acknowledged when they were read.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Debug, Clone, Default)]
pub struct Tracking {
    /// The guest's initial sequence number, if it is known.
    isn: Option<u32>,
    native: Vec<Native>,
    ours: Vec<Ours>,
}

/// A sender's acknowledged bytes, and its window at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderState {
    /// Bytes of the stream, SYN included.
    pub acked_bytes: u64,
    pub cwnd_segs: u32,
}

#[derive(Debug, Clone, Copy)]
struct Native {
    at_us: u64,
    acked_bytes: u64,
    cwnd_segs: u32,
}

#[derive(Debug, Clone, Copy)]
struct Ours {
    at_us: u64,
    snd_una: u32,
    cwnd_segs: u32,
}

/// Both windows after the same acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    pub at_us: u64,
    pub native_segs: f64,
    pub ours_segs: f64,
}

impl Pair {
    /// |ours - native| / native
    pub fn error(&self) -> f64 {
        (self.ours_segs - self.native_segs).abs() / self.native_segs
    }
}

impl Tracking {
    /// For a connection whose initial sequence number is known.
    pub fn since(isn: u32) -> Self {
        Self { isn: Some(isn), ..Self::default() }
    }

    pub fn note_native(&mut self, at_us: u64, state: SenderState) {
        let SenderState { acked_bytes, cwnd_segs } = state;
        self.native.push(Native { at_us, acked_bytes, cwnd_segs });
    }

    pub fn note_ours(&mut self, at_us: u64, snd_una: u32, cwnd_segs: u32) {
        self.ours.push(Ours { at_us, snd_una, cwnd_segs });
    }

    /// One pair for each acknowledgement that both series have. Where one was read several times,
    /// the last applies: duplicates change windows and acknowledge nothing new.
    pub fn pairs(&self) -> Vec<Pair> {
        let Some(offset) = self.isn.or_else(|| self.likely_isn()) else { return Vec::new() };
        let ours: HashMap<u32, &Ours> = self.ours.iter().map(|it| (it.snd_una, it)).collect();
        let mut pairs: Vec<Pair> = Vec::new();
        let mut last_una = None;
        for native in &self.native {
            let una = (native.acked_bytes as u32).wrapping_add(offset);
            let Some(ours) = ours.get(&una) else { continue };
            let pair = Pair {
                at_us: native.at_us,
                native_segs: f64::from(native.cwnd_segs),
                ours_segs: f64::from(ours.cwnd_segs),
            };
            match pairs.last_mut().filter(|_| last_una == Some(una)) {
                Some(last) => *last = pair,
                None => pairs.push(pair),
            }
            last_una = Some(una);
        }
        pairs
    }

    /// The initial sequence number: what most often lies between the two at the same time.
    fn likely_isn(&self) -> Option<u32> {
        let mut votes: HashMap<u32, u32> = HashMap::new();
        let mut next = 0;
        for native in &self.native {
            while next + 1 < self.ours.len() && self.ours[next].at_us < native.at_us {
                next += 1;
            }
            let ours = self.ours.get(next)?;
            *votes.entry(ours.snd_una.wrapping_sub(native.acked_bytes as u32)).or_default() += 1;
        }
        votes.into_iter().max_by_key(|&(offset, count)| (count, offset)).map(|(offset, _)| offset)
    }
}

/// Averages of the pairs over intervals of this length.
pub fn averaged(pairs: &[Pair], length_us: u64) -> Vec<Pair> {
    let bins = pairs.chunk_by(|a, b| a.at_us / length_us == b.at_us / length_us);
    bins.map(|bin| {
        let mean = |value: fn(&Pair) -> f64| bin.iter().map(value).sum::<f64>() / bin.len() as f64;
        Pair {
            at_us: bin[0].at_us / length_us * length_us,
            native_segs: mean(|pair| pair.native_segs),
            ours_segs: mean(|pair| pair.ours_segs),
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Just below the wrap, so that it is crossed.
    const ISN: u32 = u32::MAX - 5_000;

    fn native(tracking: &mut Tracking, at_us: u64, acked_bytes: u64, cwnd_segs: u32) {
        tracking.note_native(at_us, SenderState { acked_bytes, cwnd_segs });
    }

    #[test]
    fn windows_after_the_same_acknowledgement_are_compared() {
        let mut tracking = Tracking::default();
        for i in 1..=10_u64 {
            native(&mut tracking, i * 100, i * 1_000, i as u32);
            // Read a little later; at 5 and 6 an acknowledgement came in between.
            let acked = if i == 5 || i == 6 { i + 1 } else { i };
            let una = ISN.wrapping_add(acked as u32 * 1_000);
            tracking.note_ours(i * 100 + 10, una, 2 * acked as u32);
        }
        let pairs = tracking.pairs();
        assert!(pairs.iter().all(|pair| pair.error() == 1.0), "{pairs:?}");
        let acked: Vec<f64> = pairs.iter().map(|pair| pair.native_segs).collect();
        assert_eq!(acked, [1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
    }

    #[test]
    fn the_last_look_at_an_acknowledgement_counts() {
        let mut tracking = Tracking::default();
        for (at_us, cwnd_segs) in [(0, 10), (100, 10), (200, 5)] {
            native(&mut tracking, at_us, 1_000, cwnd_segs);
            tracking.note_ours(at_us + 1, ISN.wrapping_add(1_000), cwnd_segs);
        }
        let expected = Pair { at_us: 200, native_segs: 5.0, ours_segs: 5.0 };
        assert_eq!(tracking.pairs(), [expected]);
        assert!(Tracking::default().pairs().is_empty());
    }

    /// Ours is read whenever an acknowledgement comes, the guest's only now and then: their
    /// difference at the same time means nothing.
    #[test]
    fn a_known_start_needs_no_guess() {
        let mut tracking = Tracking::since(ISN);
        for i in 1..=30_u64 {
            tracking.note_ours(i * 10, ISN.wrapping_add(i as u32 * 1_000), i as u32);
            if i % 5 == 0 {
                native(&mut tracking, i * 10 + 5, i * 1_000, i as u32);
            }
        }
        let pairs = tracking.pairs();
        assert_eq!(pairs.len(), 6);
        assert!(pairs.iter().all(|pair| pair.error() == 0.0), "{pairs:?}");
    }

    #[test]
    fn averages_are_of_their_own_time() {
        let pair = |at_us, native_segs, ours_segs| Pair { at_us, native_segs, ours_segs };
        let pairs = [pair(0, 1.0, 3.0), pair(99, 3.0, 3.0), pair(100, 8.0, 9.0)];
        let expected = [pair(0, 2.0, 3.0), pair(100, 8.0, 9.0)];
        assert_eq!(averaged(&pairs, 100), expected);
    }
}
