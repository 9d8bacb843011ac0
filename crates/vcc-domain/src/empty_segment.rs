//! Segments without payload that neither end has sent.

use std::num::NonZeroU8;

use vcc_engine::{FlowKey, Segment, sys};
use vcc_net::empty_segment::{EMPTY_TCP_MAX_BYTES, EmptySegment};
use vcc_net::wire::*;

use crate::frame::{Direction, Frame};
use crate::ip::Ip;
use crate::options::{ALIGNED_TIMESTAMPS, Places};
use crate::parse::Parsed;

/// A segment without payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bare {
    pub direction: Direction,
    pub seq: u32,
    pub ack: u32,
    /// `enum vcc_tcp_flag`.
    pub flags: u32,
    pub window: u16,
    /// TSval and TSecr.
    pub timestamps: Option<[u32; 2]>,
}

impl Bare {
    /// A RST that its receiver believes by its sequence number alone (RFC 9293, 3.10.7.4).
    pub(crate) fn reset(direction: Direction, seq: u32) -> Self {
        Bare { direction, seq, ack: 0, flags: sys::TCP_RST, window: 0, timestamps: None }
    }

    /// Its frame, as the sender might have sent it.
    pub(crate) fn frame(&self, key: &FlowKey, neighbour: &sys::vcc_neighbour) -> Frame {
        let mut macs = [neighbour.guest_mac, neighbour.next_hop_mac];
        if self.direction == Direction::ToGuest {
            macs.reverse();
        }
        Frame::full(self.between(key).frame(macs, key.vlan()))
    }

    /// The segment as the engine parses it behind this IP header.
    pub(crate) fn parsed(&self, key: &FlowKey, ip: Ip, now_us: u64) -> Parsed {
        let header_bytes = ip.tcp_bytes;
        let timestamps_at = (TCP_BYTES + ALIGNED_TIMESTAMPS.len()) as u8;
        let timestamps_at = self.timestamps.and_then(|_| NonZeroU8::new(timestamps_at));
        let options = if timestamps_at.is_some() { sys::OPT_TIMESTAMPS } else { 0 };
        let [tsval, tsecr] = self.timestamps.unwrap_or_default();
        let segment = Segment {
            now_us,
            seq: self.seq,
            ack: self.ack,
            window: self.window,
            flags: self.flags as u16,
            options: options as u16,
            tsval,
            tsecr,
            ip_ecn: ip.ecn,
            option_room_bytes: (TCP_BYTES + TCP_OPTIONS_MAX_BYTES - header_bytes) as u8,
            ..Segment::default()
        };
        let places = Places { timestamps_at, ..Places::default() };
        Parsed { key: *key, ip, segment, header_bytes, places }
    }

    /// Its TCP header with a full checksum, and the header's size. What is behind is zeroes.
    pub(crate) fn tcp(&self, key: &FlowKey) -> ([u8; EMPTY_TCP_MAX_BYTES], usize) {
        self.between(key).tcp()
    }

    fn between(&self, key: &FlowKey) -> EmptySegment {
        let raw = key.as_raw();
        let mut addresses = [raw.guest_addr, raw.peer_addr];
        let mut ports = [raw.guest_port, raw.peer_port].map(u16::from_be);
        if self.direction == Direction::ToGuest {
            addresses.reverse();
            ports.reverse();
        }
        let Self { seq, ack, window, timestamps, .. } = *self;
        EmptySegment { addresses, ports, seq, ack, flags: self.flags as u16, window, timestamps }
    }
}
