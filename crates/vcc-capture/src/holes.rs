//! Bytes that a guest has sent and that are not in the capture, or not at first. Bytes that come soon were
//! reordered between the guest and the capture, later ones lost there and sent again. Bytes that the peer
//! acknowledges without them were lost by the capture itself.

use vcc_net::seq::{advance, after, before};

/// Bytes that come within this part of a round trip were not sent again: RACK waits for a fourth of one (RFC
/// 8985, 6.2), and for an ACK before that.
const REORDERED_PARTS: u64 = 2;

/// Holes of a connection at a time. The first gives way to a new one, and counts as lost upstream.
const HOLES_MAX: usize = 16;

#[derive(Clone, Debug, Default)]
pub(crate) struct Holes {
    /// In the order of their sequence numbers.
    open: Vec<Hole>,
    pub reordered_bytes: u64,
    /// Lost in front of the place of the capture.
    pub lost_upstream_bytes: u64,
    /// Lost by the capture.
    pub missing_bytes: u64,
}

/// From a sequence number to the one behind its last.
#[derive(Clone, Copy, Debug)]
struct Hole {
    from: u32,
    to: u32,
    since_ns: u64,
}

impl Hole {
    fn bytes(&self) -> u64 {
        advance(self.from, self.to).into()
    }
}

impl Holes {
    /// The guest has sent from `seq` to `end`, and the highest number before was `snd_nxt`. `rtt_ns`: 0 if it
    /// is unknown.
    pub(crate) fn note_sent(
        &mut self,
        now_ns: u64,
        rtt_ns: u64,
        snd_nxt: u32,
        (seq, end): (u32, u32),
    ) {
        if after(seq, snd_nxt) {
            if self.open.len() == HOLES_MAX {
                self.lost_upstream_bytes += self.open.remove(0).bytes();
            }
            self.open.push(Hole { from: snd_nxt, to: seq, since_ns: now_ns });
        } else if before(seq, snd_nxt) && !self.open.is_empty() {
            self.fill(now_ns, rtt_ns, seq, end);
        }
    }

    fn fill(&mut self, now_ns: u64, rtt_ns: u64, seq: u32, end: u32) {
        let mut left = Vec::with_capacity(self.open.len());
        for &hole in &self.open {
            let filled = Hole { from: max(hole.from, seq), to: min(hole.to, end), ..hole };
            if !before(filled.from, filled.to) {
                left.push(hole);
                continue;
            }
            let is_reordered = now_ns - hole.since_ns < rtt_ns / REORDERED_PARTS;
            let counted = match is_reordered {
                true => &mut self.reordered_bytes,
                false => &mut self.lost_upstream_bytes,
            };
            *counted += filled.bytes();
            let parts = [Hole { to: filled.from, ..hole }, Hole { from: filled.to, ..hole }];
            left.extend(parts.into_iter().filter(|part| part.from != part.to));
        }
        // A segment in the middle of one makes two.
        let beyond = left.split_off(left.len().min(HOLES_MAX));
        self.lost_upstream_bytes += beyond.iter().map(Hole::bytes).sum::<u64>();
        self.open = left;
    }

    /// The peer has acknowledged up to `ack`; of this, `unseen_bytes` beyond all that was seen.
    pub(crate) fn note_acked(&mut self, ack: u32, unseen_bytes: u32) {
        self.missing_bytes += u64::from(unseen_bytes);
        let missing_bytes = &mut self.missing_bytes;
        self.open.retain_mut(|hole| {
            let acked = min(hole.to, ack);
            *missing_bytes += u64::from(advance(hole.from, acked));
            hole.from = max(hole.from, acked);
            hole.from != hole.to
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
    const MS: u64 = 1_000_000;

    fn at(offset: u32) -> u32 {
        BASE.wrapping_add(offset)
    }

    /// Ten ms later than the hole, on a path of 15 ms.
    fn send(holes: &mut Holes, snd_nxt: u32, seq: u32, end: u32) {
        holes.note_sent(10 * MS, 15 * MS, at(snd_nxt), (at(seq), at(end)));
    }

    /// Of a hole from 100 to 300, with a segment to 400 behind it.
    fn with_hole() -> Holes {
        let mut holes = Holes::default();
        holes.note_sent(0, 0, at(0), (at(0), at(100)));
        holes.note_sent(0, 0, at(100), (at(300), at(400)));
        holes
    }

    fn counted(holes: &Holes) -> (u64, u64, usize) {
        (holes.lost_upstream_bytes, holes.missing_bytes, holes.open.len())
    }

    #[test]
    fn what_comes_later_was_lost_upstream() {
        let mut holes = with_hole();
        send(&mut holes, 400, 150, 250);
        assert_eq!(counted(&holes), (100, 0, 2));
        send(&mut holes, 400, 0, 400);
        assert_eq!(counted(&holes), (200, 0, 0));
        holes.note_acked(at(400), 0);
        assert_eq!(counted(&holes), (200, 0, 0));
        assert_eq!(holes.reordered_bytes, 0);
    }

    #[test]
    fn what_comes_at_once_was_reordered() {
        let mut holes = with_hole();
        holes.note_sent(7 * MS, 15 * MS, at(400), (at(100), at(300)));
        assert_eq!((holes.reordered_bytes, counted(&holes)), (200, (0, 0, 0)));
    }

    #[test]
    fn what_is_acknowledged_unseen_was_lost_by_the_capture() {
        let mut holes = with_hole();
        holes.note_acked(at(100), 0);
        assert_eq!(counted(&holes), (0, 0, 1));
        holes.note_acked(at(250), 0);
        assert_eq!(counted(&holes), (0, 150, 1));
        send(&mut holes, 400, 250, 300);
        holes.note_acked(at(500), 100);
        assert_eq!(counted(&holes), (50, 250, 0));
    }

    #[test]
    fn holes_are_bounded() {
        let mut holes = Holes::default();
        for number in 0..100 {
            send(&mut holes, number * 20, number * 20 + 10, number * 20 + 20);
        }
        assert_eq!(counted(&holes), (840, 0, HOLES_MAX));
        holes.note_acked(at(2000), 0);
        assert_eq!(counted(&holes), (840, 160, 0));
    }
}
