//! Accurate ECN (RFC 9768), spoken by vcc in the guest's name.

mod native;
mod negotiation;
mod receiver;
mod scripts;
mod sender;

use crate::common::*;
use vcc_engine::{Action, GuestEcn, Params, sys};

/// The ACE field of a segment that leaves.
fn ace(action: &Action) -> u32 {
    u32::from(action.flags) >> 6 & 7
}

/// What the handshake says of a SYN that arrived as Not-ECT, ECT(1), ECT(0) and CE (table 2).
const CODES: [u16; 4] = [2, 3, 4, 6];

/// The guest opens; the peer's SYN-ACK has `ace`.
fn opened(params: Params, syn: Seg, ace: u16) -> Conn {
    let mut conn = Conn::new(params, 5);
    conn.guest_syn(syn);
    conn.peer_synack(linux_syn().ace(ace));
    conn.guest_acks(0);
    conn
}

fn to_accecn(params: Params) -> Conn {
    Conn::to_accecn(params, 5)
}

fn from_accecn(params: Params) -> Conn {
    let mut conn = Conn::new(params, 5);
    conn.peer_syn(linux_syn().asking_accecn());
    conn.guest_synack(linux_syn().room(ROOM_BYTES));
    conn.guest_gets(conn.ack(0).ace(CODES[0]));
    assert!(has_accecn(&conn));
    conn
}

fn has_accecn(conn: &Conn) -> bool {
    conn.flow.accecn != 0
}

fn overriding() -> Params {
    params(|p| p.guest_ecn = GuestEcn::Override.number())
}

fn classic() -> Params {
    params(|p| p.accecn = 0)
}
