//! ECN: the guest and the fabric see exactly the ECN negotiated for each (RFC 3168; law 5), and one
//! reduction per window (law 6).

mod data;
mod guest_ecn;
mod negotiation;

use crate::common::*;
use vcc_engine::{GuestEcn, Mode, Params, sys};

const ECN_BITS: u32 = sys::TCP_AE | sys::TCP_CWR | sys::TCP_ECE;

/// The ECN bits of a SYN-ACK.
fn answer_with(bits: u32) -> Seg {
    let mut answer = linux_syn();
    answer.0.flags |= bits as u16;
    answer
}
