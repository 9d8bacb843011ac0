//! Builds a pure ACK as the guest would have sent it.

use vcc_engine::{FlowState, Said, sys};

use super::{Headers, Snooped};
use crate::checksum::Sum;
use crate::empty_segment::Bare;
use crate::feedback_options::APPENDED_BYTES;
use crate::frame::{Direction, Frame};
use crate::ip::Ip;
use crate::options::{KIND_NOP, KIND_SACK};
use crate::parse::{Parsed, parse};
use vcc_engine::FlowKey;
use vcc_net::wire::*;

const IPV6_LENGTH_AT: usize = 4;
const BLOCK_BYTES: usize = 8;
/// Two NOPs, kind and length.
const SACK_BYTES: usize = 4;

/// An acknowledgement in the guest's name.
pub(crate) struct Answer<'flow> {
    pub key: &'flow FlowKey,
    pub flow: &'flow FlowState,
    pub snooped: &'flow Snooped,
    pub said: Said,
    /// With SACK blocks of what is stored behind a hole.
    pub with_blocks: bool,
}

/// A frame and its parsed form. To separate the two costs as much as to make them.
pub(crate) struct Made {
    pub frame: Frame,
    pub parsed: Parsed,
}

impl Answer<'_> {
    /// It, at this time.
    pub(crate) fn made(&self, now_us: u64) -> Made {
        let ts_recent = self.snooped.snoop.0.ts_recent;
        let stamped = self.flow.has(sys::FLOW_TIMESTAMPS);
        let timestamps = stamped.then_some([self.snooped.tsval, ts_recent]);
        let bare = Bare {
            direction: Direction::FromGuest,
            seq: self.flow.snd_nxt,
            ack: self.said.ack,
            flags: self.said.flags.into(),
            window: self.said.window,
            timestamps,
        };
        let (tcp, tcp_bytes) = bare.tcp(self.key);
        if self.with_blocks
            && self.snooped.behind().next().is_some()
            && let Some(made) = self.with_blocks(&tcp[..tcp_bytes], now_us)
        {
            return made;
        }
        let headers = &self.snooped.headers;
        let mut bytes = headers_of(headers, tcp_bytes);
        bytes.extend_from_slice(&tcp[..tcp_bytes]);
        let frame = Frame::full(bytes);
        let (ip_at, tcp_at) = (usize::from(headers.ip_at), usize::from(headers.tcp_at));
        let ipv6 = headers.is_ipv6();
        let counted_from = if ipv6 { tcp_at } else { ip_at };
        let ip = Ip {
            ipv6,
            at: ip_at,
            tcp_at,
            length: (tcp_at - counted_from + tcp_bytes) as u16,
            tcp_bytes,
            ecn: sys::IP_ECN_NOT_ECT as u8,
        };
        let parsed = bare.parsed(self.key, ip, now_us);
        debug_assert!(parse(&frame, Direction::FromGuest).is_ok_and(|mut again| {
            again.segment.now_us = now_us;
            again == parsed
        }));
        Made { frame, parsed }
    }

    /// The same with SACK blocks (RFC 2018); None: there are none.
    #[cold]
    fn with_blocks(&self, tcp: &[u8], now_us: u64) -> Option<Made> {
        let room_bytes = TCP_BYTES + TCP_OPTIONS_MAX_BYTES - tcp.len() - APPENDED_BYTES;
        let most = room_bytes.saturating_sub(SACK_BYTES) / BLOCK_BYTES;
        let blocks = self.snooped.behind().take(most);
        let blocks: Vec<u32> = blocks.flat_map(|(from, end)| [from, end]).collect();
        if blocks.is_empty() {
            return None;
        }
        let option_bytes = blocks.len() * size_of::<u32>();
        let (option_bytes, tcp_bytes) = (option_bytes + 2, tcp.len() + SACK_BYTES + option_bytes);
        let mut bytes = headers_of(&self.snooped.headers, tcp_bytes);
        let tcp_at = bytes.len();
        bytes.extend_from_slice(tcp);
        bytes.extend([KIND_NOP, KIND_NOP, KIND_SACK, option_bytes as u8]);
        bytes.extend(blocks.into_iter().flat_map(u32::to_be_bytes));
        let header = &mut bytes[tcp_at..];
        let flags = read_u16(header, TCP_OFFSET_FLAGS_AT) & TCP_FLAGS_MASK;
        write_u16(header, TCP_OFFSET_FLAGS_AT, tcp_offset_flags(tcp_bytes, flags));
        write_u16(header, TCP_CHECK_AT, 0);
        let mut frame = Frame::full(bytes);
        let mut parsed = parse(&frame, Direction::FromGuest).ok()?;
        let check = parsed.tcp_checksum(&frame.bytes[tcp_at..]);
        write_u16(&mut frame.bytes, tcp_at + TCP_CHECK_AT, check);
        parsed.segment.now_us = now_us;
        Some(Made { frame, parsed })
    }
}

/// The guest's link and IP headers in front of `tcp_bytes`, without ECT (RFC 3168, 6.1.4). As the
/// packet cannot be fragmented, its IPv4 identification has no meaning (RFC 6864, 4.1).
pub(super) fn headers_of(headers: &Headers, tcp_bytes: usize) -> Vec<u8> {
    let (ip_at, tcp_at) = (usize::from(headers.ip_at), usize::from(headers.tcp_at));
    let mut bytes = Vec::with_capacity(tcp_at + tcp_bytes + APPENDED_BYTES);
    bytes.extend_from_slice(&headers.bytes[..tcp_at]);
    let ip = &mut bytes[ip_at..];
    if headers.is_ipv6() {
        ip[1] &= !0x30;
        write_u16(ip, IPV6_LENGTH_AT, tcp_bytes as u16);
    } else {
        let row = |at: usize| read_u32(&headers.bytes, ip_at + at);
        let mut rows = [
            row(0) & 0xfffc_0000 | (IPV4_BYTES + tcp_bytes) as u32,
            u32::from(IPV4_DONT_FRAGMENT),
            row(8) & 0xffff_0000,
            row(IPV4_SOURCE_AT),
            row(IPV4_DESTINATION_AT),
        ];
        rows[2] |= u32::from(Sum::MINUS_ZERO.with_rows(rows).checksum());
        for (place, row) in ip.chunks_exact_mut(4).zip(rows) {
            place.copy_from_slice(&row.to_be_bytes());
        }
    }
    bytes
}
