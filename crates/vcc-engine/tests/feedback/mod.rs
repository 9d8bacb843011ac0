//! Reports at the sender half: loss, duplication and reordering of reports do no harm, impossible
//! reports are ignored, and a silent far end counts as a classic receiver, or as none.

mod echo;
mod forged;
mod reading;
mod silence;

use crate::common::sim::Rng;
use crate::common::*;
use vcc_engine::{Action, Params, sys};

const COUNTER_MASK: u32 = 0xff_ffff;

fn state(conn: &Conn) -> u32 {
    conn.flow.flags & (sys::FLOW_FEEDBACK_HEARD | sys::FLOW_FEEDBACK_LOST | sys::FLOW_UNHEARD)
}

fn is_consumed(action: &Action) -> bool {
    u32::from(action.verdict) == sys::VCC_CONSUME
}

/// A far end that counts received payload and reports it.
#[derive(Default)]
struct Far {
    ect0_bytes: u32,
    ce_bytes: u32,
}

impl Far {
    fn new() -> Self {
        Far { ect0_bytes: 1, ce_bytes: 0 }
    }

    fn gets(&mut self, unmarked_bytes: u32, marked_bytes: u32) -> &Self {
        self.ect0_bytes = (self.ect0_bytes + unmarked_bytes) & COUNTER_MASK;
        self.ce_bytes = (self.ce_bytes + marked_bytes) & COUNTER_MASK;
        self
    }

    fn pack(&self, ack: Seg) -> Seg {
        ack.pack(self.ect0_bytes, self.ce_bytes)
    }

    /// Beside a segment that acknowledges everything before `offset`.
    fn fack(&self, conn: &Conn, offset: u32) -> Seg {
        conn.ack(offset.wrapping_sub(1)).fack(self.ect0_bytes, self.ce_bytes)
    }
}

/// A flow of `underlay` in congestion avoidance with ten segments in flight.
fn flying(name: &str, isn: u32) -> (Conn, u32) {
    let mut conn = Conn::to_vcc(underlay(name), isn);
    conn.flow.0.cc.ssthresh_segs = 2;
    conn.send_segs(0, 10);
    let mss_bytes = conn.mss();
    (conn, mss_bytes)
}
