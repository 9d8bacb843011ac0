//! Losses, timeouts and idle periods, as inferred (RFC 5681, RFC 6582, RFC 6298).

mod probes;
mod recovery;
mod timeout;
mod unused;

use crate::common::*;
use vcc_engine::{Params, sys};

fn state(conn: &Conn) -> u32 {
    conn.flow.ca_state.into()
}

/// `segs` in flight after one round trip of 10 ms.
fn in_flight(isn: u32, segs: u32) -> Conn {
    let mut conn = Conn::established(Params::default(), isn).without_sack();
    conn.send_segs(0, 1);
    conn.wait_us(10_000).peer_ack_segs(1);
    conn.send_segs(1, 1 + segs);
    conn
}
