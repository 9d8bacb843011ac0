//! Segments that a parser could make, near to what a connection expects or far from it.

use vcc_engine::{Segment, sys};

use super::flow::Flow;
use crate::input::Input;

const MOST_PAYLOAD_BYTES: u32 = 1 << 20;
const COUNTER_MASK: u32 = 0xff_ffff;
const ALL_FLAGS: u16 = 0x1ff;
const ALL_OPTIONS: u16 = 0x1fff;

/// A number near one of the connection's.
fn near(input: &mut Input, places: &[u32], mss_bytes: u32) -> u32 {
    let place = input.u8();
    let offset = match place >> 4 & 7 {
        0 => 0,
        1 => 1,
        2 => 1u32.wrapping_neg(),
        3 => mss_bytes,
        4 => mss_bytes.wrapping_neg(),
        5 => u32::from(input.u8()).wrapping_mul(mss_bytes),
        6 => u32::from(input.u16()),
        _ => input.u32(),
    };
    let signed = if place & 0x80 == 0 { offset } else { offset.wrapping_neg() };
    places[usize::from(place & 0xf) % places.len()].wrapping_add(signed)
}

/// A segment as a shell parses it.
pub fn segment(input: &mut Input, flow: &Flow, from_guest: bool, now_us: u64) -> Segment {
    let state = &flow.state;
    let mss_bytes = u32::from(state.mss_bytes).max(1);
    let guests = [
        state.snd_nxt,
        state.snd_una,
        state.round_end,
        state.recover,
        state.right_edge,
        flow.iss,
        state.resent_end,
        state.undo_to,
        state.feedback_ack,
        state.asked_seq,
        state.syn_seq,
    ];
    let peers = [state.rcv_nxt, state.rcv_wup, state.rcv_edge, flow.irs, state.asked_seq];
    let (own, others) =
        if from_guest { (&guests[..], &peers[..]) } else { (&peers[..], &guests[..]) };
    let mut s = Segment { now_us, ..Segment::default() };
    s.flags = flags(input);
    s.seq = near(input, own, mss_bytes);
    s.ack = near(input, others, mss_bytes);
    let shape = input.u8();
    s.ip_ecn = shape & 3;
    s.payload_bytes = match shape >> 2 & 7 {
        0 => 0,
        1 => mss_bytes,
        2 => 1,
        3 => mss_bytes - 1,
        4 => u32::from(input.u8()) * mss_bytes,
        5 => u32::from(input.u16()),
        6 => MOST_PAYLOAD_BYTES,
        _ => mss_bytes.saturating_mul(2),
    }
    .min(MOST_PAYLOAD_BYTES);
    s.seg_bytes = match shape >> 5 & 3 {
        0 => 0,
        1 => mss_bytes,
        2 => 1,
        _ => u32::from(input.u16()),
    }
    .min(s.payload_bytes.saturating_sub(1));
    s.window = match input.u8() {
        0 => 0,
        1 => 1,
        2 => state.window_received,
        255 => u16::MAX,
        other => u16::from(other) << 6,
    };
    if shape >> 7 != 0 || u32::from(s.flags) & sys::TCP_SYN != 0 {
        options(input, flow, &mut s);
    }
    s
}

/// Mostly an ACK; all others by a second byte.
fn flags(input: &mut Input) -> u16 {
    let ack = sys::TCP_ACK as u16;
    match input.u8() {
        kind @ 0..192 => {
            ack | [0, sys::TCP_PSH, sys::TCP_ECE, sys::TCP_CWR][usize::from(kind & 3)] as u16
        }
        kind @ 192..240 => {
            let others = [
                sys::TCP_SYN,
                sys::TCP_SYN | sys::TCP_ACK,
                sys::TCP_RST,
                sys::TCP_RST | sys::TCP_ACK,
                sys::TCP_FIN | sys::TCP_ACK,
            ];
            let ecn = [0, sys::TCP_ECE, sys::TCP_ECE | sys::TCP_CWR, sys::TCP_ECN_BITS];
            (others[usize::from(kind) % others.len()] | ecn[usize::from((kind / 5) & 3)]) as u16
        }
        _ => input.u16() & ALL_FLAGS,
    }
}

fn options(input: &mut Input, flow: &Flow, s: &mut Segment) {
    let usual = sys::OPT_MSS | sys::OPT_WSCALE | sys::OPT_SACK_PERMITTED | sys::OPT_TIMESTAMPS;
    let is_syn = u32::from(s.flags) & sys::TCP_SYN != 0;
    s.options = match (input.u8(), is_syn) {
        (0, true) => usual as u16,
        (0, false) => sys::OPT_TIMESTAMPS as u16,
        (1, true) => (usual | sys::OPT_HELLO) as u16,
        (1, false) => sys::OPT_PACK as u16,
        (2, _) => (sys::OPT_SACK | sys::OPT_TIMESTAMPS) as u16,
        (3, _) => sys::OPT_FACK as u16,
        _ => input.u16() & ALL_OPTIONS,
    };
    let has = |option: u32| u32::from(s.options) & option != 0;
    s.option_room_bytes = input.u8() % 41;
    if has(sys::OPT_MSS) {
        s.mss = match input.u8() {
            0 => 1460,
            1 => 0,
            2 => u16::MAX,
            other => u16::from(other) * 40,
        };
    }
    if has(sys::OPT_WSCALE) {
        s.wscale = input.pick(&[7, 0, 3, 10, 14, 15, 255]);
    }
    if has(sys::OPT_HELLO) {
        s.hello = input.pick(&[sys::HELLO_ACCEPT, sys::HELLO_OFFER, sys::HELLO_NONE, 3, 255]) as u8;
    }
    if has(sys::OPT_SACK) {
        s.dsack_bytes = input.pick(&[0, 0, 1, 1448, 1 << 20, u32::MAX]);
        s.dsack_seq = near(input, &[flow.state.snd_una, flow.state.undo_from], 1448);
    }
    if has(sys::OPT_TIMESTAMPS) {
        s.tsval = near(input, &[flow.state.rcv_tsval, s.now_us as u32 / 1000], 1);
        s.tsecr = near(input, &[flow.state.rcv_tsval, s.now_us as u32 / 1000], 1);
    }
    if has(sys::OPT_PACK | sys::OPT_FACK | sys::OPT_ACCECN_CE) {
        let more = [0, 1, 1448, 2896, 100_000, 1 << 23];
        let heard = flow.state.heard;
        s.feedback = sys::vcc_feedback {
            ect0_bytes: heard.ect0_bytes.wrapping_add(input.pick(&more)) & COUNTER_MASK,
            ce_bytes: heard.ce_bytes.wrapping_add(input.pick(&more)) & COUNTER_MASK,
        };
    }
}
