//! A shell's work on a packet: rewriting, FACKs and segmentation.

use vcc_engine::{Action, Segment, sys};

use super::{OPT_OURS, Packet};

/// Applies an action to a packet's header.
pub(super) fn rewrite(packet: &mut Packet, action: &Action) {
    let segment = &mut packet.segment;
    segment.flags = action.flags;
    segment.ip_ecn = action.ip_ecn;
    segment.mss = action.mss;
    segment.wscale = action.wscale;
    if action.strip != 0 {
        segment.options &= !OPT_OURS;
    }
    match u32::from(action.emit) {
        sys::EMIT_HELLO => {
            segment.options |= sys::OPT_HELLO as u16;
            segment.hello = action.hello;
        }
        sys::EMIT_PACK => {
            segment.options |= sys::OPT_PACK as u16;
            segment.feedback = action.feedback;
        }
        _ => {}
    }
}

/// The FACK beside a packet: its header alone, acknowledging one byte less.
pub(super) fn fack_beside(packet: &Packet, action: &Action) -> Option<Packet> {
    let whole = packet.segment;
    let segment = Segment {
        now_us: whole.now_us,
        seq: whole.seq,
        ack: whole.ack.wrapping_sub(1),
        window: whole.window,
        flags: sys::TCP_ACK as u16,
        options: sys::OPT_FACK as u16,
        feedback: action.feedback,
        ip_ecn: action.ip_ecn,
        ..Segment::default()
    };
    let wanted = u32::from(action.emit) == sys::EMIT_FACK;
    wanted.then_some(Packet { segment, sack: (0, 0) })
}

/// Segments a super-segment as TSO does: CWR on the first, FIN and PSH on the last.
pub(super) fn segmented(packet: Packet) -> Vec<Packet> {
    let whole = packet.segment;
    if whole.seg_bytes == 0 {
        return vec![packet];
    }
    let mut pieces = Vec::new();
    let mut offset = 0;
    while offset < whole.payload_bytes {
        let mut piece = packet;
        let bytes = whole.seg_bytes.min(whole.payload_bytes - offset);
        piece.segment.seq = whole.seq.wrapping_add(offset);
        piece.segment.payload_bytes = bytes;
        piece.segment.seg_bytes = 0;
        if offset > 0 {
            piece.segment.flags &= !(sys::TCP_CWR as u16);
        }
        if offset + bytes < whole.payload_bytes {
            piece.segment.flags &= !((sys::TCP_FIN | sys::TCP_PSH) as u16);
        }
        offset += bytes;
        pieces.push(piece);
    }
    pieces
}
