//! Builds FACKs: a segment's header with the FACK option, sent next to the segment.

use vcc_engine::{FlowState, Params, Segment, sys};

use crate::checksum;
use crate::feedback_options::{self, FACK_BYTES};
use crate::frame::{Checksum, Frame};
use crate::parse::Parsed;
use vcc_net::wire::*;

/// A TCP header with the FACK option only.
const FACK_TCP_BYTES: usize = TCP_BYTES + FACK_BYTES;

/// The ECN field of a FACK. A FACK is a pure ACK, so the engine is asked for the ECN field of one.
pub(crate) fn ip_ecn(flow: &FlowState, params: &Params, beside: &Segment) -> u8 {
    let empty_ack = Segment {
        payload_bytes: 0,
        seg_bytes: 0,
        flags: sys::TCP_ACK as u16,
        options: 0,
        ip_ecn: sys::IP_ECN_NOT_ECT as u8,
        ..*beside
    };
    let mut copy = *flow;
    copy.from_guest(params, &empty_ack).ip_ecn
}

/// Builds the FACK next to `frame`, which has been rewritten: an ACK of one byte less, with the
/// counters. A full checksum is computed from scratch.
pub(crate) fn fack(
    frame: &Frame,
    parsed: &Parsed,
    feedback: &sys::vcc_feedback,
    ip_ecn: u8,
) -> Frame {
    let tcp_at = parsed.ip.tcp_at;
    debug_assert!(parsed.ip.length != 0, "a FACK cannot carry BIG TCP's jumbo option (RFC 2675)");
    let mut fack =
        Frame { bytes: frame.bytes[..tcp_at + TCP_BYTES].to_vec(), gso_size: 0, ..*frame };
    fack.bytes.extend(feedback_options::fack(feedback));
    let tcp = &mut fack.bytes[tcp_at..];
    write_u32(tcp, TCP_ACK_AT, parsed.segment.ack.wrapping_sub(1));
    let word = tcp_offset_flags(FACK_TCP_BYTES, sys::TCP_ACK as u16);
    write_u16(tcp, TCP_OFFSET_FLAGS_AT, word);
    // No urgent pointer without URG.
    write_u16(tcp, TCP_URGENT_AT, 0);
    match frame.checksum {
        Checksum::Full | Checksum::Verified => {
            write_u16(tcp, TCP_CHECK_AT, 0);
            let check = parsed.tcp_checksum(tcp);
            write_u16(tcp, TCP_CHECK_AT, check);
        }
        Checksum::Partial => {
            let before_bytes = parsed.ip.tcp_bytes as u32;
            checksum::tcp_length_changed(frame.checksum, tcp, before_bytes, FACK_TCP_BYTES as u32);
        }
    }
    parsed.ip.rewrite(&mut fack.bytes, ip_ecn, parsed.ip.length_of(FACK_TCP_BYTES));
    fack
}
