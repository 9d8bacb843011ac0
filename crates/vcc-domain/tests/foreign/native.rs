//! The yardstick: the engine's model of a native Linux sender with NewReno and ECN, on the path of
//! [`crate::path`]. It counts in segments of any size.

#[allow(dead_code, reason = "what always uses its window is never validated")]
#[path = "../../../vcc-engine/tests/common/sim/native.rs"]
mod model;

use std::collections::VecDeque;

use model::Native;

use crate::path::{DELAY_US, Marker, SPACING_US};
use crate::{RUN_US, US_PER_S, WARM_UP_US};

const INITIAL_CWND_SEGS: i64 = 10;

/// A segment on its way to the receiver.
struct Sent {
    arrives_us: u64,
    marked: bool,
    cwr: bool,
}

/// The throughput in segments per second if one in `mark_every` is marked. The receiver
/// acknowledges each segment at once, and repeats ECE until CWR (RFC 3168, 6.1.3).
pub fn segs_per_s(mark_every: u32) -> f64 {
    let mut native = Native::new(INITIAL_CWND_SEGS, 0);
    let mut marker = Marker::new(mark_every);
    let (mut una, mut nxt) = (0i64, 0i64);
    let (mut cwr_due, mut latched) = (false, false);
    let (mut wire_free_us, mut now_us) = (0u64, 0u64);
    let mut under_way: VecDeque<Sent> = VecDeque::new();
    let mut arrived = 0u64;
    while now_us < WARM_UP_US + RUN_US {
        let before = nxt;
        while nxt - una < native.cwnd {
            nxt += 1;
            wire_free_us = wire_free_us.max(now_us) + SPACING_US;
            under_way.push_back(Sent {
                arrives_us: wire_free_us + DELAY_US,
                marked: marker.next(),
                cwr: std::mem::take(&mut cwr_due),
            });
        }
        native.on_sent(now_us, nxt - before, una, nxt, nxt - una);
        let sent = under_way.pop_front().expect("a window of at least one segment");
        latched = (latched && !sent.cwr) || sent.marked;
        arrived += u64::from((WARM_UP_US..WARM_UP_US + RUN_US).contains(&sent.arrives_us));
        now_us = sent.arrives_us + DELAY_US + SPACING_US;
        una += 1;
        cwr_due |= native.on_ack(now_us, 1, latched, una, nxt, nxt - una);
    }
    arrived as f64 / (RUN_US / US_PER_S) as f64
}
