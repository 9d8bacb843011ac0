//! Checks the laws of `receive` from outside: what is acknowledged to the peer of one connection,
//! against what the guest's ring has had and what the guest itself has acknowledged.

use vcc_frames::wire::*;

use super::segment::Segment;
use super::watch::distance;

/// Watches the port of a guest with one connection, IPv4.
#[derive(Default)]
pub struct Promises {
    /// The guest's ring and the guest have all of the peer's data before it.
    ring_nxt: Option<u32>,
    /// Ranges in the ring behind a hole.
    behind: Vec<(u32, u32)>,
    guest_ack: u32,
    /// The guest's own right edge, the highest and the last one.
    edge_max: u32,
    edge: u32,
    scale: Option<u8>,
    shown: Option<(u32, u32)>,
    /// Does the port store what the guest has no room for? Then what has reached the port is promised.
    pub buffers: bool,
    /// Does it store for a time only? Then it shows the guest's own window again.
    pub may_shrink: bool,
    /// Acknowledged segments that the guest had not acknowledged itself.
    pub promises: u64,
    /// Pure ACKs to the peer.
    pub acks: u64,
}

impl Promises {
    /// The guest sends a frame, which has not reached the port yet.
    pub fn see_from_guest(&mut self, frame: &[u8]) {
        let Some(segment) = Segment::read(frame) else { return };
        if segment.has(SYN) {
            self.scale = segment.wscale;
        }
        if !segment.has(ACK) || segment.has(RST) {
            return;
        }
        let scale = if segment.has(SYN) { 0 } else { self.scale.unwrap_or(0) };
        let edge = segment.ack.wrapping_add(u32::from(segment.window) << scale);
        let first = self.ring_nxt.is_none();
        if first || distance(self.guest_ack, segment.ack) >= 0 {
            (self.guest_ack, self.edge) = (segment.ack, edge);
        }
        if first || distance(self.edge_max, edge) > 0 {
            self.edge_max = edge;
        }
        self.advance(segment.ack);
    }

    /// The guest's ring has a frame that the guest will accept.
    pub fn see_placed(&mut self, frame: &[u8]) {
        let Some(segment) = Segment::read(frame) else { return };
        let Some(nxt) = self.ring_nxt else { return };
        if segment.payload.is_empty() || !segment.is_right(frame, false) {
            return;
        }
        self.behind.push((segment.seq, segment.payload_end()));
        self.behind.retain(|(_, end)| distance(nxt, *end) > 0);
        while let Some((_, end)) = self.behind.iter().copied().find(|(seq, end)| {
            let nxt = self.ring_nxt.unwrap_or(nxt);
            distance(nxt, *seq) <= 0 && distance(nxt, *end) > 0
        }) {
            self.advance(end);
        }
    }

    fn advance(&mut self, nxt: u32) {
        if self.ring_nxt.is_none_or(|before| distance(before, nxt) > 0) {
            self.ring_nxt = Some(nxt);
        }
    }

    /// A frame leaves the port for the fabric.
    pub fn leaves(&mut self, frame: &[u8], partial: bool) {
        let Some(segment) = Segment::read(frame) else { return };
        assert!(segment.is_right(frame, partial), "a checksum is wrong");
        if self.ring_nxt.is_none() && segment.has(SYN) && segment.has(ACK) {
            // The port accepts in the guest's name.
            let edge = segment.ack.wrapping_add(segment.window.into());
            (self.ring_nxt, self.scale) = (Some(segment.ack), segment.wscale);
            (self.guest_ack, self.edge, self.edge_max) = (segment.ack, edge, edge);
        }
        let (Some(nxt), true) = (self.ring_nxt, segment.has(ACK)) else { return };
        if segment.has(SYN) || segment.has(RST) {
            return;
        }
        let scale = self.scale.unwrap_or(0);
        let edge = segment.ack.wrapping_add(u32::from(segment.window) << scale);
        assert!(
            distance(segment.ack, nxt) >= 0,
            "law 16: {} bytes are acknowledged that the ring does not have",
            distance(nxt, segment.ack)
        );
        // The peer's FIN is the guest's to acknowledge, and is not in `edge_max`.
        if distance(self.guest_ack, segment.ack) > 0 {
            let is_within = self.buffers || distance(segment.ack, self.edge_max) >= 0;
            assert!(is_within, "law 16: beyond the guest's window");
            self.promises += 1;
        }
        let unit = 1i64 << scale;
        assert!(
            self.buffers || distance(edge, self.edge_max) > -unit,
            "a window of {} more than the guest's",
            distance(self.edge_max, edge)
        );
        let current = self.shown.is_none_or(|(ack, _)| distance(ack, segment.ack) >= 0);
        if current {
            let is_full =
                self.may_shrink || self.buffers && distance(self.guest_ack, segment.ack) > 1 << 20;
            assert!(
                segment.window > 0 || is_full || distance(segment.ack, self.edge) < unit,
                "law 3: a window is shut that the guest keeps open"
            );
            if let Some((_, before)) = self.shown {
                // The guest and the port both round (RFC 7323, 2.4).
                let kept = distance(before, edge) > -2 * unit || distance(self.edge, edge) >= 0;
                assert!(
                    kept || self.may_shrink,
                    "the edge moved left by {}",
                    distance(edge, before)
                );
            }
            self.shown = Some((segment.ack, edge));
        }
        self.acks += u64::from(segment.payload.is_empty());
    }
}
