//! Law 11: in shadow mode next to a native sender of the same algorithm, the engine computes that
//! sender's own alpha.

use std::iter;

use vcc_engine::{FlowState, Mode, Params, Underlay, sys};

use crate::wire::{AtSender, Connection, Fate, Link, MSS_BYTES, Segment, Wire};

const ALPHA_ONE: u32 = 1024;

fn watching(underlay: &str) -> Params {
    let underlay: Underlay = underlay.parse().expect("an underlay");
    let mut params = Params::default();
    params.0.underlay = underlay.number();
    params.0.mode = Mode::Shadow.number();
    params
}

/// The options of a segment: kind and value.
fn options(segment: &Segment) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = segment.options();
    iter::from_fn(move || {
        rest = &rest[rest.iter().take_while(|&&kind| kind == 1).count()..];
        let (&kind, &length) = (rest.first()?, rest.get(1)?);
        let value = rest.get(2..length.into())?;
        rest = &rest[length.into()..];
        Some((kind, value))
    })
}

fn as_engine_sees(segment: &Segment, now_us: u64) -> vcc_engine::Segment {
    let mut seen = vcc_engine::Segment {
        now_us,
        seq: segment.seq(),
        ack: segment.ack(),
        payload_bytes: segment.payload_bytes(),
        window: segment.window(),
        flags: segment.flags().into(),
        ip_ecn: segment.ecn(),
        ..Default::default()
    };
    for (kind, value) in options(segment) {
        let option = match (kind, value) {
            (2, &[high, low]) => {
                seen.mss = u16::from_be_bytes([high, low]);
                sys::OPT_MSS
            }
            (3, &[wscale]) => {
                seen.wscale = wscale;
                sys::OPT_WSCALE
            }
            (4, _) => sys::OPT_SACK_PERMITTED,
            (5, _) => sys::OPT_SACK,
            (8, _) => sys::OPT_TIMESTAMPS,
            _ => 0,
        };
        seen.options |= option as u16;
    }
    seen
}

/// Updates of Linux's alpha, compared with the engine's.
#[derive(Default, Debug)]
struct Moves {
    /// With delivered bytes, by either's account.
    linuxs: u32,
    ours: u32,
    /// Without delivered bytes: Linux takes any ACK that finds nothing in flight for the end of an
    /// unmarked window. RFC 8257, 3.3, step 2 ends none.
    idle: u32,
}

/// Runs the engine over the segments and compares alpha after each one that the sender received.
fn compare_alpha(passed: &[AtSender]) -> Moves {
    let params = watching("dctcp");
    let mut flow = FlowState::default();
    let mut moves = Moves::default();
    let mut alpha_before = ALPHA_ONE;
    for (number, event) in passed.iter().enumerate() {
        // The clock advances by a microsecond per segment, so nothing times out.
        let now_us = 1_000_000 + number as u64;
        let (segment, state) = match event {
            AtSender::Sent(segment) => {
                flow.from_guest(&params, &as_engine_sees(segment, now_us));
                continue;
            }
            AtSender::Got(segment, state) => (segment, state),
        };
        let una_before = flow.snd_una;
        flow.to_guest(&params, &as_engine_sees(segment, now_us));
        let Some(state) = state else { continue };
        let ours = &mut flow.0.cc.own[sys::DCTCP_ALPHA as usize];
        let alpha = state.ca_priv[0];
        if flow.0.snd_una != una_before {
            assert_eq!(*ours, alpha, "at segment {number}, {alpha_before} before");
            moves.linuxs += u32::from(alpha != alpha_before);
            moves.ours += u32::from(*ours != alpha_before);
        } else {
            assert_eq!(*ours, alpha_before, "nothing was delivered at segment {number}");
            moves.idle += u32::from(alpha != alpha_before);
            *ours = alpha;
        }
        alpha_before = alpha;
    }
    moves
}

/// Requests, each with a response of this many segments: DCTCP's typical workload.
#[track_caller]
fn exchange(response_segs: usize, marks: impl Fn(u32) -> bool + Sync + Send) -> Moves {
    const ROUNDS: usize = 60;
    const REQUEST_SEGS: usize = 7;
    let mut moves = Moves::default();
    crate::with_connection(
        "dctcp",
        "dctcp",
        Link::default(),
        |mut wire: Wire, mut connection: Connection| {
            for _ in 0..ROUNDS {
                wire.send(&mut connection, REQUEST_SEGS * MSS_BYTES, |number, _| {
                    if marks(number) { Fate::IsMarked } else { Fate::Passes }
                });
                wire.answer(&mut connection, response_segs * MSS_BYTES);
            }
            moves = compare_alpha(&wire.take_at_sender());
        },
    );
    moves
}

#[test]
fn alpha_is_linuxs_without_responses() {
    exchange(0, |_| true);
    let moves = exchange(0, |number| number % 50 < 9);
    assert!(moves.linuxs > 10 && moves.ours == moves.linuxs && moves.idle == 0, "{moves:?}");
}

#[test]
fn alpha_is_linuxs_except_during_a_response() {
    exchange(40, |_| true);
    exchange(40, |number| number % 7 == 3);
    let moves = exchange(40, |number| number % 50 < 9);
    assert!(moves.linuxs > 10 && moves.ours == moves.linuxs, "{moves:?}");
}
