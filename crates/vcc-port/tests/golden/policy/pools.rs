//! Pools: their shares, and idle flows.

use std::thread::sleep;
use std::time::Duration;

use vcc_engine::sys;

use super::*;
use crate::conversation::MSS_BYTES;
use crate::direction::Direction::{FromGuest, ToGuest};

/// With an RTO that no slow machine reaches.
const POOLED: &str = r#"
[[pools]]
name = "p"
window = "200K"
[[rules]]
name = "preferred"
guest_port = 3
pool = "p"
weight = 3
rto_min = "60s"
[[rules]]
name = "others"
pool = "p"
rto_min = "60s"
"#;

/// A flow is idle after half a second, which is checked every second.
const IDLE: Duration = Duration::from_millis(2600);

/// Two segments of what the guest has sent.
fn acknowledge(flow: &mut Ruling<'_>, acknowledged: &mut u32) {
    let left = flow.ends.guest_next.wrapping_sub(*acknowledged);
    *acknowledged = acknowledged.wrapping_add(left.min(2 * MSS_BYTES as u32));
    let mut ack = flow.ends.packet(ToGuest);
    (ack.ack, ack.window) = (*acknowledged, 0xffff);
    flow.send(ToGuest, &ack);
}

/// Every flow sends all that it may, and a part of what it sent is acknowledged.
fn round(flows: &mut [Ruling<'_>], acknowledged: &mut [u32]) {
    let (ruled, total) = (flows[0].ruled, 200 << 10);
    for (flow, acknowledged) in flows.iter_mut().zip(acknowledged) {
        let state = flow.state().expect("a flow");
        let edge = if state.has(sys::FLOW_WINDOW_SHOWN) {
            state.right_edge
        } else {
            flow.ends.guest_next.wrapping_add(10 * MSS_BYTES as u32)
        };
        while edge.wrapping_sub(flow.ends.guest_next) as i32 >= MSS_BYTES as i32 {
            flow.data(FromGuest);
        }
        acknowledge(flow, acknowledged);
        let used = &ruled.shared.pools().expect("pools")[0];
        assert!(used.held_bytes <= total, "{used:?}");
    }
}

fn shown_bytes(flow: &Ruling<'_>) -> u32 {
    flow.state().expect("a flow").window_shown_bytes().expect("a window")
}

#[test]
fn flows_of_a_pool_share_its_window_by_their_weights() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut ruled = Ruled::new(POOLED, None);
    let mut flows: Vec<Ruling<'_>> =
        [1u16, 2, 3].into_iter().map(|port| Ruling::open(&ruled, port)).collect();
    let mut acknowledged: Vec<u32> = flows.iter().map(|flow| flow.ends.guest_next).collect();
    let near = |shown: u32, share: f64| {
        let idle_bytes = ruled.shared.pools().expect("pools")[0].idle_bytes;
        let wanted = share * f64::from((200 << 10) - idle_bytes);
        (f64::from(shown) - wanted).abs() <= 2.0 * MSS_BYTES as f64
    };
    // The third has its first window, until it is found to be idle.
    sleep(IDLE);
    for _ in 0..400 {
        round(&mut flows[..2], &mut acknowledged);
    }
    let shown: Vec<u32> = flows[..2].iter().map(shown_bytes).collect();
    assert!(shown.iter().all(|&shown| near(shown, 0.5)), "halves: {shown:?}");

    // Its first data comes a round trip before their acknowledgement; soon enough to be no timeout,
    // which is a second as long as no round trip was measured (RFC 6298, 2.1).
    flows[2].data(FromGuest);
    for _ in 0..40 {
        round(&mut flows[..2], &mut acknowledged);
    }
    for _ in 0..400 {
        round(&mut flows, &mut acknowledged);
    }
    let shown: Vec<u32> = flows.iter().map(shown_bytes).collect();
    assert!(near(shown[0], 0.2) && near(shown[1], 0.2) && near(shown[2], 0.6), "{shown:?}");
    let used = &ruled.shared.pools().expect("pools")[0];
    assert_eq!((used.weight, used.overdrawn), (5, 0));

    // None has anything to send for a while, then the preferred one alone has not.
    for (flow, acknowledged) in flows.iter_mut().zip(&mut acknowledged) {
        while *acknowledged != flow.ends.guest_next {
            acknowledge(flow, acknowledged);
        }
    }
    sleep(IDLE);
    for _ in 0..400 {
        round(&mut flows[..2], &mut acknowledged);
    }
    let shown: Vec<u32> = flows[..2].iter().map(shown_bytes).collect();
    assert!(shown.iter().all(|&shown| near(shown, 0.5)), "all of what the idle one had: {shown:?}");

    // Under the same pool's name the ledger continues; without it, nothing is left in it.
    drop(flows);
    ruled.apply(&POOLED.replace("weight = 3", "weight = 7"));
    ruled.datapath.judge_flows().expect("judged");
    assert!(ruled.shared.pools().expect("pools")[0].held_bytes > 0);
    ruled.datapath.forget_flows().expect("forgotten");
    let used = &ruled.shared.pools().expect("pools")[0];
    assert_eq!((used.held_bytes, used.idle_bytes, used.weight), (0, 0, 0));
}
