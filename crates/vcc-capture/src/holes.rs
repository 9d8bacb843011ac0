//! Bytes that a guest has sent and that are not in the capture, or not at first. Bytes that come later were
//! lost in front of the place of the capture and sent again. Bytes that the peer acknowledges without them
//! were lost by the capture itself.

use vcc_net::seq::{advance, after, before};

/// Holes of a connection at a time; the oldest gives way, and counts as lost in front.
const HOLES_MAX: usize = 16;

#[derive(Clone, Debug, Default)]
pub(crate) struct Holes {
    /// In the order of their sequence numbers: from, and to behind the last byte.
    open: Vec<(u32, u32)>,
    /// Lost in front of the place of the capture.
    pub lost_in_front_bytes: u64,
    /// Lost by the capture.
    pub missing_bytes: u64,
}

impl Holes {
    /// The guest has sent from `seq` to `end`, and the highest number before was `snd_nxt`.
    pub(crate) fn note_sent(&mut self, snd_nxt: u32, seq: u32, end: u32) {
        if after(seq, snd_nxt) {
            if self.open.len() == HOLES_MAX {
                let (from, to) = self.open.remove(0);
                self.lost_in_front_bytes += u64::from(advance(from, to));
            }
            self.open.push((snd_nxt, seq));
        } else if before(seq, snd_nxt) && !self.open.is_empty() {
            self.fill(seq, end);
        }
    }

    fn fill(&mut self, seq: u32, end: u32) {
        let mut left = Vec::with_capacity(self.open.len());
        for &(from, to) in &self.open {
            let (first, last) = (max(from, seq), min(to, end));
            if !before(first, last) {
                left.push((from, to));
                continue;
            }
            self.lost_in_front_bytes += u64::from(advance(first, last));
            left.extend([(from, first), (last, to)].into_iter().filter(|(from, to)| from != to));
        }
        left.truncate(HOLES_MAX);
        self.open = left;
    }

    /// The peer has acknowledged up to `ack`; of this, `unseen_bytes` beyond all that was seen.
    pub(crate) fn note_acked(&mut self, ack: u32, unseen_bytes: u32) {
        self.missing_bytes += u64::from(unseen_bytes);
        let missing_bytes = &mut self.missing_bytes;
        self.open.retain_mut(|(from, to)| {
            let acked = min(*to, ack);
            *missing_bytes += u64::from(advance(*from, acked));
            *from = max(*from, acked);
            from != to
        });
    }
}

fn max(a: u32, b: u32) -> u32 {
    if after(a, b) { a } else { b }
}

fn min(a: u32, b: u32) -> u32 {
    if before(a, b) { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u32 = u32::MAX - 150;

    fn at(offset: u32) -> u32 {
        BASE.wrapping_add(offset)
    }

    /// Of a hole from 100 to 300, with a segment to 400 behind it.
    fn with_hole() -> Holes {
        let mut holes = Holes::default();
        holes.note_sent(at(0), at(0), at(100));
        holes.note_sent(at(100), at(300), at(400));
        holes
    }

    fn counted(holes: &Holes) -> (u64, u64, usize) {
        (holes.lost_in_front_bytes, holes.missing_bytes, holes.open.len())
    }

    #[test]
    fn what_comes_later_was_lost_in_front() {
        let mut holes = with_hole();
        holes.note_sent(at(400), at(150), at(250));
        assert_eq!(counted(&holes), (100, 0, 2));
        holes.note_sent(at(400), at(0), at(400));
        assert_eq!(counted(&holes), (200, 0, 0));
        holes.note_acked(at(400), 0);
        assert_eq!(counted(&holes), (200, 0, 0));
    }

    #[test]
    fn what_is_acknowledged_unseen_was_lost_by_the_capture() {
        let mut holes = with_hole();
        holes.note_acked(at(100), 0);
        assert_eq!(counted(&holes), (0, 0, 1));
        holes.note_acked(at(250), 0);
        assert_eq!(counted(&holes), (0, 150, 1));
        holes.note_sent(at(400), at(250), at(300));
        holes.note_acked(at(500), 100);
        assert_eq!(counted(&holes), (50, 250, 0));
    }

    #[test]
    fn holes_are_bounded() {
        let mut holes = Holes::default();
        for number in 0..100 {
            holes.note_sent(at(number * 20), at(number * 20 + 10), at(number * 20 + 20));
        }
        assert_eq!(counted(&holes), (840, 0, HOLES_MAX));
        holes.note_acked(at(2000), 0);
        assert_eq!(counted(&holes), (840, 160, 0));
    }
}
