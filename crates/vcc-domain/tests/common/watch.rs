//! Checks the laws of `hold` from outside: what crosses a port, against what the ends have sent.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use vcc_domain::{Checksum, Frame, Port};
use vcc_engine::{FlowKey, sys};
use vcc_frames::wire::*;

use super::segment::Segment;

/// Before or after, in modular arithmetic.
pub fn distance(from: u32, to: u32) -> i64 {
    i64::from(to.wrapping_sub(from) as i32)
}

/// The byte of a stream at an offset: neighbours differ, and streams by `salt`.
pub fn pattern(salt: u8, at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ salt
}

#[derive(Default)]
struct Connection {
    iss: Option<u32>,
    /// The FIN's sequence number, as the guest sends it.
    fin_seq: Option<u32>,
    /// The highest acknowledgement and right edge that the peer has sent.
    una: u32,
    edge: Option<u32>,
    /// The highest sequence number that the guest has sent, and that has left.
    sent: u32,
    left: u32,
    /// The guest's highest acknowledgement.
    received: Option<u32>,
    /// The scales on the SYNs of the guest, of the peer, and of the peer as the guest sees it.
    scale_guest: Option<u8>,
    scale_peer: Option<u8>,
    scale_shown: Option<u8>,
    /// Of a SYN that the guest has not answered.
    scale_asked: Option<u8>,
    /// The highest acknowledgement and right edge that the guest was shown.
    shown: Option<(u32, u32)>,
}

/// Watches one guest's port.
pub struct Watch {
    /// Of the guest's streams.
    salt: u8,
    connections: BTreeMap<(SocketAddr, SocketAddr), Connection>,
    /// Whether windows hold: false once the port has lost its state, or no longer acts by `hold`.
    pub windows: bool,
    /// Whether the port acknowledges what it holds.
    pub splits: bool,
    /// How far a flight may exceed the underlay's window, which counts in segments: for a guest
    /// whose segments change their size.
    pub slack_bytes: i64,
    /// New data that left.
    pub left_bytes: u64,
    pub checked_acks: u64,
}

impl Watch {
    pub fn new(salt: u8) -> Self {
        Watch {
            salt,
            connections: BTreeMap::new(),
            windows: true,
            splits: false,
            slack_bytes: 0,
            left_bytes: 0,
            checked_acks: 0,
        }
    }

    fn connection(&mut self, guest: SocketAddr, peer: SocketAddr) -> &mut Connection {
        self.connections.entry((guest, peer)).or_default()
    }

    /// The guest sends a frame, which has not reached the port yet.
    pub fn see_from_guest(&mut self, frame: &[u8]) {
        let Some(segment) = Segment::read(frame) else { return };
        let connection = self.connection(segment.from, segment.to);
        if segment.has(SYN) && connection.iss != Some(segment.seq) {
            *connection = Connection {
                iss: Some(segment.seq),
                una: segment.seq.wrapping_add(1),
                sent: segment.seq.wrapping_add(1),
                left: segment.seq.wrapping_add(1),
                scale_guest: segment.wscale,
                scale_peer: connection.scale_peer.filter(|_| segment.has(ACK)),
                scale_shown: connection.scale_asked.filter(|_| segment.has(ACK)),
                ..Default::default()
            };
        }
        if segment.has(FIN) {
            connection.fin_seq = Some(segment.payload_end());
        }
        if distance(connection.sent, segment.end()) > 0 {
            connection.sent = segment.end();
        }
        let acks = segment.has(ACK) && !segment.has(RST);
        if acks && connection.received.is_none_or(|before| distance(before, segment.ack) > 0) {
            connection.received = Some(segment.ack);
        }
    }

    /// The peer's valid segment is about to reach the port.
    pub fn see_from_peer(&mut self, frame: &[u8]) {
        let Some(segment) = Segment::read(frame) else { return };
        let connection = self.connection(segment.to, segment.from);
        if segment.has(SYN) {
            connection.scale_peer = segment.wscale;
        }
        if !segment.has(ACK) || segment.has(RST) || distance(connection.left, segment.ack) > 0 {
            return;
        }
        let scale = connection.scale(connection.scale_peer, &segment);
        let edge = segment.ack.wrapping_add(u32::from(segment.window) << scale);
        if connection.edge.is_none_or(|before| distance(before, edge) > 0) {
            connection.edge = Some(edge);
        }
        if distance(connection.una, segment.ack) > 0 {
            connection.una = segment.ack;
        }
    }

    /// A frame leaves the port for the fabric.
    pub fn leaves(&mut self, port: &Port, frame: &Frame) {
        let Some(segment) = Segment::read(&frame.bytes) else { return };
        let (salt, windows, slack_bytes) = (self.salt, self.windows, self.slack_bytes);
        assert!(
            segment.is_right(&frame.bytes, frame.checksum == Checksum::Partial),
            "a checksum is wrong"
        );
        let connection = self.connection(segment.from, segment.to);
        let Some(iss) = connection.iss else { return };
        if segment.has(SYN | RST) || segment.end() == segment.seq {
            return;
        }
        let offset = u64::from(segment.seq.wrapping_sub(iss.wrapping_add(1)));
        for (at, &byte) in (offset..).zip(segment.payload) {
            assert_eq!(byte, pattern(salt, at), "payload is touched at offset {at}");
        }
        if segment.has(FIN) {
            assert_eq!(Some(segment.payload_end()), connection.fin_seq, "a FIN moved");
        }
        let end = segment.end();
        let new_bytes = distance(connection.left, end);
        if new_bytes <= 0 {
            return;
        }
        connection.left = end;
        if windows {
            let edge = connection.edge.expect("data before the peer's first window");
            assert!(
                distance(end, edge) >= 0,
                "law 14: {} bytes beyond the peer's edge, {} of {} unacknowledged",
                distance(edge, end),
                distance(connection.una, end),
                segment.payload.len(),
            );
            connection.within_underlay(port, &segment, slack_bytes);
        }
        self.left_bytes += new_bytes as u64;
    }

    /// A frame is about to reach the guest, which discards a forged one.
    pub fn see_to_guest(&mut self, port: &Port, frame: &Frame, forged: bool) {
        let Some(segment) = Segment::read(&frame.bytes) else { return };
        assert!(
            segment.is_right(&frame.bytes, frame.checksum == Checksum::Partial),
            "a checksum is wrong"
        );
        // A flow that has been closed for a while is forgotten.
        let known = port.flow(&FlowKey::new(segment.to, segment.from, None)).is_some();
        let (windows, splits) = (self.windows && known, self.splits);
        let connection = self.connection(segment.to, segment.from);
        match segment.flags & (SYN | ACK) {
            SYN => connection.scale_asked = segment.wscale,
            flags if flags & SYN != 0 && connection.shown.is_none() => {
                connection.scale_shown = segment.wscale;
            }
            _ => {}
        }
        // The window of a SYN-ACK is the peer's own; the next one may be smaller (law 3).
        if !segment.has(ACK) || segment.has(SYN | RST) || !windows {
            return;
        }
        let scale = connection.scale(connection.scale_shown, &segment);
        let edge = segment.ack.wrapping_add(u32::from(segment.window) << scale);
        // The guest discards an ACK of what it has not sent, and a segment before its window.
        let is_old = connection.received.is_some_and(|next| distance(segment.end(), next) > 0);
        if is_old || distance(connection.sent, segment.ack) > 0 {
            return;
        }
        assert!(
            splits || distance(segment.ack, connection.left) >= 0,
            "law 15: an ACK of what has not left, by {}",
            distance(connection.left, segment.ack)
        );
        if forged {
            return;
        }
        if let Some((ack, before)) = connection.shown {
            if distance(ack, segment.ack) < 0 {
                return;
            }
            assert!(
                distance(before, edge) >= 0 || segment.window == u16::MAX,
                "law 2: the edge moved left by {}",
                distance(edge, before)
            );
        }
        connection.shown = Some((segment.ack, edge));
        self.checked_acks += 1;
    }

    /// Does the guest know of all that the peer has acknowledged?
    pub fn has_shown_all(&self, guest: SocketAddr, peer: SocketAddr) -> bool {
        let Some(connection) = self.connections.get(&(guest, peer)) else { return true };
        let is_shown = |(ack, _)| distance(connection.una, ack) >= 0;
        !self.windows || connection.shown.is_none_or(is_shown)
    }

    /// The edge that the guest of a connection was shown.
    pub fn shown_edge(&self, guest: SocketAddr, peer: SocketAddr) -> Option<u32> {
        self.connections.get(&(guest, peer))?.shown.map(|(_, edge)| edge)
    }
}

impl Connection {
    /// The scale of a window of the peer, which offered this one (RFC 7323, 2.2).
    fn scale(&self, offered: Option<u8>, segment: &Segment) -> u8 {
        if segment.has(SYN) { 0 } else { self.scale_guest.and(offered).unwrap_or(0) }
    }

    /// New data has left. What has been reported as out of the network makes room (RFC 3042).
    fn within_underlay(&self, port: &Port, segment: &Segment, slack_bytes: i64) {
        let key = FlowKey::new(segment.from, segment.to, None);
        let Some(flow) = port.flow(&key) else { return };
        let mss_bytes = i64::from(flow.mss_bytes);
        let flight_bytes = distance(self.una, segment.payload_end());
        let sacked_bytes = (i64::from(flow.dupacks) * mss_bytes).min(flight_bytes);
        let in_network_bytes = flight_bytes - sacked_bytes;
        let unit_bytes = segment.payload.len() as i64;
        // The part of a segment beyond a window of one is a segment, which leaves in its time.
        let has_part = port.params().0.window_floor_segs == 0 && flow.cc.part_1024 > 0;
        let window_segs = flow.cc.cwnd_segs + u32::from(has_part && flow.cc.cwnd_segs == 1);
        let window_bytes = (i64::from(window_segs) * mss_bytes).max(unit_bytes);
        assert!(
            in_network_bytes <= window_bytes + slack_bytes
                || u32::from(flow.stage) == sys::STAGE_CLOSED,
            "law 14: {in_network_bytes} bytes in the network, a window of {window_bytes}, state {}",
            flow.ca_state
        );
    }
}
