//! The handshake and its negotiation, in both roles (RFC 9293, 3.5).

mod blind;
mod negotiated;
mod retransmitted;

use crate::common::*;
use vcc_engine::{Mode, Params, sys};

const ECN_BITS: u32 = sys::TCP_AE | sys::TCP_CWR | sys::TCP_ECE;

/// The guest may receive any copy of a segment, so all must be rewritten alike.
#[track_caller]
fn assert_same_rewriting(first: &vcc_engine::Action, second: &vcc_engine::Action) {
    assert_eq!(
        (first.flags, first.window, first.mss, first.wscale, first.ip_ecn),
        (second.flags, second.window, second.mss, second.wscale, second.ip_ecn)
    );
}
