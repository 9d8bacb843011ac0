use crate::native::{FloodAck, FloodState, flood_granted_segs};

const FLOOD_CWND_SEGS: u32 = 512;
const INITIAL_SEGS: u32 = 10;
/// The kernel's enum tcp_ca_state.
const OPEN: u8 = 0;
const DISORDER: u8 = 1;
const CWR: u8 = 2;
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;

/// An ACK for so many segments of a flight that fills any window.
fn delivers(delivered_segs: u32) -> FloodAck {
    let segs = FLOOD_CWND_SEGS;
    FloodAck { delivered_segs, in_flight_segs: segs, most_out_segs: segs, ..FloodAck::default() }
}

/// Online, with NewReno's window at `cwnd_segs`, in slow start.
fn at(cwnd_segs: u32) -> FloodState {
    let mut state = FloodState::new(INITIAL_SEGS);
    state.on_ack(delivers(cwnd_segs - INITIAL_SEGS));
    assert_eq!(state.cwnd_segs, cwnd_segs);
    state
}

/// Online, after a recovery that left NewReno's window at `cwnd_segs`.
fn in_congestion_avoidance(cwnd_segs: u32) -> FloodState {
    let mut state = at(2 * cwnd_segs);
    state.reduce();
    state.set_state(RECOVERY, 1);
    state.set_state(OPEN, 1);
    assert_eq!((state.cwnd_segs, state.ssthresh_segs), (cwnd_segs, cwnd_segs));
    state
}

#[test]
fn online_the_window_is_512_and_newrenos_grows_beside_it() {
    let mut state = FloodState::new(INITIAL_SEGS);
    assert!(state.is_online);
    for expected_segs in [20, 40, 80] {
        assert_eq!(state.on_ack(delivers(expected_segs / 2)), FLOOD_CWND_SEGS);
        assert_eq!(state.cwnd_segs, expected_segs, "slow start (RFC 5681, 3.1)");
    }
    let mut state = in_congestion_avoidance(20);
    for _ in 0..19 {
        assert_eq!(state.on_ack(delivers(1)), FLOOD_CWND_SEGS);
        assert_eq!(state.cwnd_segs, 20);
    }
    state.on_ack(delivers(1));
    assert_eq!(state.cwnd_segs, 21, "a segment per window");
    state.on_ack(delivers(100_000));
    assert_eq!(state.cwnd_segs, FLOOD_CWND_SEGS, "never more than can be in flight");
}

#[test]
fn slow_start_ends_at_ssthresh() {
    let mut state = in_congestion_avoidance(20);
    state.reduce();
    state.set_state(LOSS, 1);
    assert_eq!(state.on_ack(delivers(12)), 10, "9 segments up to ssthresh, and 3 of the next 10");
    for _ in 0..7 {
        state.on_ack(delivers(1));
    }
    assert_eq!((state.cwnd_segs, state.ssthresh_segs), (11, 10));
}

/// RFC 7661, as in Linux: in slow start, at least half of the window.
#[test]
fn a_window_that_is_not_used_does_not_grow() {
    for (mut state, too_few_segs) in [(at(40), 20), (in_congestion_avoidance(40), 39)] {
        state.on_ack(FloodAck { most_out_segs: too_few_segs, ..delivers(40) });
        assert_eq!(state.cwnd_segs, 40);
        state.on_ack(FloodAck { most_out_segs: too_few_segs + 1, ..delivers(40) });
        assert!(state.cwnd_segs > 40);
    }
}

/// RFC 6937: while RecoverFS segments are delivered, ssthresh segments leave, evenly.
#[test]
fn recovery_reduces_newrenos_window_in_proportion() {
    const FLIGHT_SEGS: u32 = 400;
    let mut state = at(40);
    assert_eq!(state.reduce(), 20);
    let mut out_segs = 0;
    for delivered_segs in 1..=40 {
        let in_flight_segs = FLIGHT_SEGS - delivered_segs + out_segs;
        let ack = FloodAck { in_flight_segs, prr_out_segs: out_segs, ..delivers(1) };
        let window_segs = state.on_ack(ack);
        out_segs += window_segs - in_flight_segs;
        assert_eq!(out_segs, u32::div_ceil(delivered_segs, 2));
    }
    assert_eq!(state.cwnd_segs, 40, "NewReno's own until the loss is repaired");
    assert_eq!(state.set_state(OPEN, 1), FLOOD_CWND_SEGS);
    assert_eq!((state.cwnd_segs, state.is_online), (20, true), "RFC 6582, 3.2, step 3");
}

/// RFC 6937's slow start part, with RFC 9937's SafeACK.
#[test]
fn below_ssthresh_recovery_fills_the_window_up() {
    let mut state = at(40);
    state.reduce();
    let ack = |in_flight_segs, prr_out_segs, is_safe| FloodAck {
        in_flight_segs,
        prr_out_segs,
        is_safe,
        ..delivers(1)
    };
    assert_eq!(state.on_ack(ack(10, 0, false)), 11, "as much as is delivered");
    assert_eq!(state.on_ack(ack(10, 1, true)), 12, "and one more if nothing else is lost");
    assert_eq!(state.on_ack(ack(20, 3, true)), 20, "up to ssthresh");
}

#[test]
fn the_fast_retransmission_leaves_at_once() {
    let mut state = at(40);
    state.reduce();
    assert_eq!(state.on_ack(FloodAck { in_flight_segs: 20, ..delivers(1) }), 21);
}

#[test]
fn after_a_timeout_newreno_starts_slowly_until_all_is_repaired() {
    let mut state = at(40);
    assert_eq!(state.reduce(), 20);
    assert_eq!(state.set_state(LOSS, 1), 1);
    assert!(!state.is_online);
    assert_eq!(state.on_ack(delivers(1)), 2);
    assert_eq!(state.on_ack(delivers(2)), 4);
    assert_eq!(state.set_state(OPEN, 4), FLOOD_CWND_SEGS);
    assert_eq!((state.cwnd_segs, state.ssthresh_segs), (4, 20));
}

#[test]
fn a_timeout_in_recovery_starts_from_the_loss_window() {
    let mut state = at(40);
    state.reduce();
    state.set_state(RECOVERY, 30);
    assert_eq!(state.set_state(LOSS, 1), 1);
    assert_eq!((state.recover_fs_segs, state.on_ack(delivers(1))), (0, 2));
}

#[test]
fn disorder_is_no_loss_and_a_mark_is_one() {
    let mut state = at(40);
    assert_eq!(state.set_state(DISORDER, FLOOD_CWND_SEGS), FLOOD_CWND_SEGS);
    assert_eq!(state.on_ack(delivers(1)), FLOOD_CWND_SEGS);
    state.reduce();
    assert_eq!(state.set_state(CWR, 100), 100);
    assert!(!state.is_online);
    assert_eq!(state.set_state(OPEN, 1), FLOOD_CWND_SEGS);
    assert_eq!(state.cwnd_segs, 20);
}

/// RFC 5682 and RFC 3708: nothing was lost.
#[test]
fn an_undone_reduction_leaves_no_trace() {
    let mut state = in_congestion_avoidance(40);
    state.reduce();
    assert_eq!(state.undo(), 40);
    assert_eq!(state.set_state(OPEN, 1), FLOOD_CWND_SEGS);
    assert_eq!((state.cwnd_segs, state.ssthresh_segs), (40, 40));
    // After it went online again.
    state.reduce();
    state.set_state(OPEN, 1);
    assert_eq!(state.undo(), FLOOD_CWND_SEGS);
    assert_eq!((state.cwnd_segs, state.ssthresh_segs), (40, 40));
}

#[test]
fn the_least_ssthresh_is_two_segments() {
    let mut state = FloodState::new(1);
    assert_eq!(state.reduce(), 2);
    // RecoverFS divides.
    assert_eq!(state.on_ack(FloodAck { in_flight_segs: 3, ..delivers(1) }), 5);
}

/// Segments that are too large for the path go again, in NewReno's window, which stays.
#[test]
fn a_smaller_mtu_reduces_nothing() {
    let mut state = at(40);
    assert_eq!(state.set_state(LOSS, FLOOD_CWND_SEGS), 40);
    assert_eq!(state.set_state(OPEN, 40), FLOOD_CWND_SEGS);
    assert_eq!(state.cwnd_segs, 40);
}

/// RFC 5681, 4.1; Linux halves the window for each RTO.
#[test]
fn an_idle_newreno_window_restarts() {
    for (rtos, expected_segs) in [(0, 80), (1, 40), (2, 20), (3, 10), (4, 10), (100, 10)] {
        let mut state = at(80);
        state.restart(rtos);
        assert_eq!((state.cwnd_segs, state.is_online), (expected_segs, true));
    }
    let mut state = in_congestion_avoidance(40);
    state.on_ack(delivers(4_000));
    let cwnd_segs = state.cwnd_segs;
    state.restart(1);
    assert_eq!(state.ssthresh_segs, cwnd_segs / 2 + cwnd_segs / 4);
    let mut small = FloodState::new(INITIAL_SEGS);
    small.reduce();
    small.set_state(OPEN, 1);
    small.restart(3);
    assert_eq!(small.cwnd_segs, 5, "the restart window is no larger than cwnd");
}

#[test]
fn a_grant_is_a_window_of_2_to_512_segments() {
    const MSS_BYTES: u32 = 1448;
    for (grant_bytes, expected_segs) in [
        (0, 2),
        (MSS_BYTES * 3 - 1, 2),
        (MSS_BYTES * 3, 3),
        (MSS_BYTES * 512 - 1, 511),
        (MSS_BYTES * 513, FLOOD_CWND_SEGS),
        (u32::MAX, FLOOD_CWND_SEGS),
    ] {
        assert_eq!(flood_granted_segs(grant_bytes, MSS_BYTES), expected_segs, "{grant_bytes}");
    }
    assert_eq!(flood_granted_segs(u32::MAX, 0), 2, "before the MSS is known");
}

/// Without a host that holds, it is NewReno, in every state.
#[test]
fn without_a_host_that_holds_the_window_is_newrenos() {
    let mut state = FloodState::new(INITIAL_SEGS);
    state.host_segs = 0;
    assert_eq!(state.window_segs(), INITIAL_SEGS);
    assert_eq!(state.on_ack(delivers(10)), 20);
    assert_eq!(state.set_state(DISORDER, 20), 20);
    assert_eq!(state.set_state(OPEN, 20), 20);
    state.reduce();
    state.set_state(RECOVERY, 11);
    assert_eq!(state.set_state(OPEN, 11), 10);
    assert_eq!(state.window_segs(), 10);
    state.restart(1);
    assert_eq!(state.undo(), 20);
}

/// A window of the host replaces NewReno's where the host holds, and NewReno's comes back with all that it has
/// gained and lost meanwhile.
#[test]
fn the_window_changes_with_the_host() {
    let mut state = at(40);
    state.host_segs = 100;
    assert_eq!((state.window_segs(), state.on_ack(delivers(10))), (100, 100));
    state.host_segs = 0;
    assert_eq!(state.window_segs(), 50);
    state.host_segs = 30;
    assert_eq!(state.window_segs(), 30, "a grant below NewReno's window is obeyed, too");
    state.reduce();
    state.host_segs = 200;
    assert_eq!(state.window_segs(), 50, "a loss is repaired by NewReno's window");
    state.set_state(RECOVERY, 1);
    assert_eq!(state.set_state(OPEN, 1), 200);
}

/// Law: a grant that has shrunk is not used. Online, whatever comes, the window is at most the grant.
#[test]
fn a_withdrawn_grant_is_not_used() {
    let mut random = 1u32;
    let mut next = move |below: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) % below
    };
    let (mut state, mut window_segs) = (FloodState::new(INITIAL_SEGS), FLOOD_CWND_SEGS);
    for step in 0..100_000 {
        let in_flight_segs = next(600);
        match next(8) {
            0 => {
                state.host_segs = flood_granted_segs(next(1_000_000), 1448);
                window_segs = state.window_segs();
            }
            1 => {
                state.reduce();
            }
            2 => window_segs = state.set_state(OPEN, window_segs),
            3 => window_segs = state.set_state(DISORDER, window_segs),
            4 => window_segs = state.undo(),
            5 => state.restart(next(3)),
            _ => window_segs = state.on_ack(FloodAck { in_flight_segs, ..delivers(next(50)) }),
        }
        if state.is_online && state.recover_fs_segs == 0 {
            assert!(window_segs <= in_flight_segs.max(state.host_segs), "step {step}: {state:?}");
        }
    }
}
