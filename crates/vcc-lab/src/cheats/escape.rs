//! Ways out of control. Each is of use only to a sender that ignores the window that it is shown, so
//! each does.

use super::Segments;
use super::segment::Connections;
use super::window::raise;
use vcc_frames::wire::{
    ACK, ETHERNET_BYTES, FIN, IPV4_BYTES, PSH, RST, SYN, TCP_CHECK_AT, read_u16, write_u16,
};
use vcc_frames::{Packet, checksum};
use vcc_uml::Tampered;

/// `receives` of them all.
macro_rules! ignores_window {
    () => {
        fn receives(&mut self, mut segment: Packet, out: &mut Tampered) {
            raise(&mut segment);
            out.received.push(segment.frame());
        }
    };
}

/// Payload of a tiny segment.
const TINY_BYTES: usize = 64;
/// The part of a connection that is sent in tiny segments.
const TINY_UNTIL_BYTES: usize = 50_000;

/// The first segments are so small that windows of segments of that size would be, too.
#[derive(Default)]
pub struct TinySegments(Connections<usize>);

impl Segments for TinySegments {
    fn sends(&mut self, segment: Packet, out: &mut Tampered) {
        let sent_bytes = self.0.of_sent(&segment);
        if segment.payload.is_empty() || *sent_bytes > TINY_UNTIL_BYTES {
            return out.sent.push(segment.frame());
        }
        *sent_bytes += segment.payload.len();
        let parts = segment.payload.chunks(TINY_BYTES).enumerate();
        let last = (segment.payload.len() - 1) / TINY_BYTES;
        out.sent.extend(parts.map(|(i, part)| {
            let not_here = if i < last { FIN | PSH } else { 0 };
            let seq = segment.seq.wrapping_add((i * TINY_BYTES) as u32);
            let flags = segment.flags & !not_here;
            Packet { seq, flags, payload: part.to_vec(), ..segment.clone() }.frame()
        }));
    }

    ignores_window!();
}

/// Segments with data between two injections.
const INJECT_EVERY: u32 = 100;

/// Before each hundredth segment come a SYN, a RST one beyond the sequence number that the peer
/// expects (it answers both with a challenge ACK), and a RST at this number with a wrong checksum.
#[derive(Default)]
pub struct OwnSynRst(Connections<u32>);

impl Segments for OwnSynRst {
    fn sends(&mut self, segment: Packet, out: &mut Tampered) {
        let count = self.0.of_sent(&segment);
        *count += u32::from(!segment.payload.is_empty());
        if !segment.payload.is_empty() && *count % INJECT_EVERY == 0 {
            let bare = Packet { payload: Vec::new(), options: Vec::new(), ..segment.clone() };
            let beside = bare.seq.wrapping_add(1);
            out.sent.push(Packet { flags: SYN, ack: 0, ..bare.clone() }.frame());
            out.sent.push(Packet { flags: RST, ack: 0, seq: beside, ..bare.clone() }.frame());
            let reset = Packet { flags: RST | ACK, ..bare };
            let (mut frame, at) = (reset.frame(), reset.headers().l4 + TCP_CHECK_AT);
            let right = read_u16(&frame, at);
            write_u16(&mut frame, at, right ^ 1);
            out.sent.push(frame);
        }
        out.sent.push(segment.frame());
    }

    ignores_window!();
}

/// Payload of TCP in a first fragment, a multiple of eight bytes.
const FIRST_FRAGMENT_BYTES: usize = 512;

/// Data goes in two IP fragments each.
pub struct Fragments;

impl Segments for Fragments {
    fn sends(&mut self, segment: Packet, out: &mut Tampered) {
        const MORE_FRAGMENTS: u16 = 0x2000;
        let frame = segment.frame();
        let ip_bytes = IPV4_BYTES + segment.ip_options.len();
        let (headers, tcp) = frame.split_at(ETHERNET_BYTES + ip_bytes);
        if tcp.len() <= FIRST_FRAGMENT_BYTES {
            return out.sent.push(frame);
        }
        let (first, last) = tcp.split_at(FIRST_FRAGMENT_BYTES);
        let fragment = |flags_and_offset, part: &[u8]| {
            let mut headers = headers.to_vec();
            let ip = &mut headers[ETHERNET_BYTES..];
            write_u16(ip, 2, (ip_bytes + part.len()) as u16);
            write_u16(ip, 6, flags_and_offset);
            checksum::fill_ipv4(ip);
            [&headers, part].concat()
        };
        out.sent.push(fragment(MORE_FRAGMENTS, first));
        out.sent.push(fragment((FIRST_FRAGMENT_BYTES / 8) as u16, last));
    }

    ignores_window!();
}

/// TCP MD5 (RFC 2385).
const OPTION_MD5: u8 = 19;
const MD5_BYTES: u8 = 18;

/// Before each hundredth segment comes a signed acknowledgement, which a peer without a key throws
/// away.
#[derive(Default)]
pub struct Signed(Connections<u32>);

impl Segments for Signed {
    fn sends(&mut self, segment: Packet, out: &mut Tampered) {
        let count = self.0.of_sent(&segment);
        *count += u32::from(!segment.payload.is_empty());
        if !segment.payload.is_empty() && *count % INJECT_EVERY == 0 {
            let mut options = vec![0; usize::from(MD5_BYTES).next_multiple_of(4)];
            options[..2].copy_from_slice(&[OPTION_MD5, MD5_BYTES]);
            let signed = Packet { payload: Vec::new(), options, ..segment.clone() };
            out.sent.push(signed.frame());
        }
        out.sent.push(segment.frame());
    }

    ignores_window!();
}
