//! Builds a pure ACK as the guest would have sent it.

use vcc_engine::{FlowState, Said, sys};

use super::{Headers, Snooped};
use crate::checksum;
use crate::frame::Frame;
use crate::key::FlowKey;
use crate::wire::*;

const IPV4_LENGTH_AT: usize = 2;
const IPV4_ID_AT: usize = 4;
const IPV4_FLAGS_AT: usize = 6;
const IPV4_DONT_FRAGMENT: u16 = 0x4000;
const IPV6_LENGTH_AT: usize = 4;
/// Two NOPs before it align it (RFC 7323, appendix A).
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];
const TIMESTAMPS_BYTES: usize = 12;

/// An acknowledgement in the guest's name.
pub(crate) struct Answer<'flow> {
    pub key: &'flow FlowKey,
    pub flow: &'flow FlowState,
    pub snooped: &'flow Snooped,
    pub said: Said,
}

impl Answer<'_> {
    pub(crate) fn frame(&self) -> Frame {
        let mut tcp = [0; TCP_BYTES + TIMESTAMPS_BYTES];
        let tcp_bytes = self.write_tcp(&mut tcp);
        let mut bytes = headers(&self.snooped.headers, tcp_bytes);
        bytes.extend(&tcp[..tcp_bytes]);
        Frame::full(bytes)
    }

    /// Returns the size of the header.
    fn write_tcp(&self, tcp: &mut [u8]) -> usize {
        let mut bytes = TCP_BYTES;
        if self.flow.has(sys::FLOW_TIMESTAMPS) {
            tcp[bytes..bytes + 4].copy_from_slice(&TIMESTAMPS);
            write_u32(tcp, bytes + 4, self.snooped.tsval);
            write_u32(tcp, bytes + 8, self.snooped.snoop.0.ts_recent);
            bytes += TIMESTAMPS_BYTES;
        }
        write_u16(tcp, 0, self.key.guest().port());
        write_u16(tcp, 2, self.key.peer().port());
        write_u32(tcp, TCP_SEQ_AT, self.flow.snd_nxt);
        write_u32(tcp, TCP_ACK_AT, self.said.ack);
        write_u16(tcp, TCP_OFFSET_FLAGS_AT, tcp_offset_flags(bytes, self.said.flags));
        write_u16(tcp, TCP_WINDOW_AT, self.said.window);
        let ends = self.key.as_raw();
        let check = checksum::of_tcp(&ends.guest_addr, &ends.peer_addr, &tcp[..bytes]);
        write_u16(tcp, TCP_CHECK_AT, check);
        bytes
    }
}

/// The guest's link and IP headers in front of `tcp_bytes`, without ECT (RFC 3168, 6.1.4). As the
/// packet cannot be fragmented, its IPv4 identification says nothing (RFC 6864, 4.1).
fn headers(headers: &Headers, tcp_bytes: usize) -> Vec<u8> {
    let (ip_at, tcp_at) = (usize::from(headers.ip_at), usize::from(headers.tcp_at));
    let mut bytes = Vec::with_capacity(tcp_at + tcp_bytes);
    bytes.extend(&headers.bytes[..tcp_at]);
    let ip = &mut bytes[ip_at..];
    if headers.is_ipv6() {
        ip[1] &= !0x30;
        write_u16(ip, IPV6_LENGTH_AT, tcp_bytes as u16);
    } else {
        ip[1] &= !3;
        write_u16(ip, IPV4_LENGTH_AT, (IPV4_BYTES + tcp_bytes) as u16);
        write_u16(ip, IPV4_ID_AT, 0);
        write_u16(ip, IPV4_FLAGS_AT, IPV4_DONT_FRAGMENT);
        write_u16(ip, IPV4_CHECK_AT, 0);
        let check = checksum::of(&[ip]);
        write_u16(ip, IPV4_CHECK_AT, check);
    }
    bytes
}
