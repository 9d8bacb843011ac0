//! The live lab's fabric, driven by the calendar, with a digest of every frame that passes.

use super::time_taken::Stopwatch;
use vcc_fabric::{Fabric, Window};
use vcc_results::result::FrameLog;
use vcc_uml::{Delivery, Network};

pub(super) struct LoggedFabric {
    fabric: Fabric,
    digest: Digest,
    stopwatch: Stopwatch,
}

impl LoggedFabric {
    pub fn new(mut fabric: Fabric, window: Window) -> Self {
        fabric.set_window(window);
        Self { fabric, digest: Digest::new(), stopwatch: Stopwatch::new(window) }
    }

    pub fn into_parts(self) -> (Fabric, FrameLog, Stopwatch) {
        let Digest { frames, state } = self.digest;
        (self.fabric, FrameLog { frames, hash: format!("{state:016x}") }, self.stopwatch)
    }
}

impl Network for LoggedFabric {
    fn lookahead_ns(&self) -> u64 {
        self.fabric.lookahead_ns()
    }

    fn inject(&mut self, guest: usize, at_ns: u64, frame: Vec<u8>) {
        self.digest.note(guest, at_ns, &frame);
        self.fabric.inject(guest, at_ns, frame);
    }

    fn next_ns(&self) -> Option<u64> {
        self.fabric.next_event_ns()
    }

    fn next_delivery(&mut self, end_ns: u64) -> Option<Delivery> {
        self.stopwatch.note(end_ns);
        let delivery = self.fabric.next_delivery(end_ns - 1)?;
        self.digest.note(delivery.host, delivery.due_ns, &delivery.frame);
        Some(Delivery { guest: delivery.host, at_ns: delivery.due_ns, frame: delivery.frame })
    }
}

/// FNV-1a's step over words of 8 bytes, with a shift for the bits that it would leave behind. Words
/// take turns in eight lanes, which a CPU works on at once.
struct Digest {
    frames: u64,
    state: u64,
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;
const WORD_BYTES: usize = 8;
const LANES: usize = 8;

impl Digest {
    fn new() -> Self {
        Self { frames: 0, state: FNV_OFFSET }
    }

    fn note(&mut self, guest: usize, at_ns: u64, frame: &[u8]) {
        self.frames += 1;
        let head = [guest as u64, at_ns, frame.len() as u64, 0, 1, 2, 3, 4];
        let mut lanes = head.map(|word| step(self.state, word));
        let mut rows = frame.chunks_exact(LANES * WORD_BYTES);
        for row in &mut rows {
            for (lane, bytes) in lanes.iter_mut().zip(row.chunks_exact(WORD_BYTES)) {
                *lane = step(*lane, word(bytes));
            }
        }
        for (lane, bytes) in lanes.iter_mut().zip(rows.remainder().chunks(WORD_BYTES)) {
            *lane = step(*lane, word(bytes));
        }
        self.state = lanes.into_iter().fold(self.state, step);
    }
}

fn step(state: u64, word: u64) -> u64 {
    let state = (state ^ word).wrapping_mul(FNV_PRIME);
    state ^ state >> 29
}

/// Zeros follow what is shorter.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; WORD_BYTES];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_time_place_and_frame_counts() {
        let digest = |guest, at_ns, frame: &[u8]| {
            let mut digest = Digest::new();
            digest.note(guest, at_ns, frame);
            digest.state
        };
        let frame = [7; 61];
        let all = digest(1, 2, &frame);
        assert_eq!(all, digest(1, 2, &frame));
        assert_ne!(all, digest(0, 2, &frame));
        assert_ne!(all, digest(1, 3, &frame));
        assert_ne!(all, digest(1, 2, &frame[..60]));
        for bit in 0..frame.len() * 8 {
            let mut changed = frame;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(all, digest(1, 2, &changed));
        }
    }
}
