//! DCTCP by sections of RFC 8257.

use crate::wire::{
    ACK, CA_CWR, CA_LOSS, CA_RECOVERY, CWR, Connection, ECE, ECN_CE, ECN_ECT0, ECN_NEGOTIATED,
    Event, Fate, Link, MSS_BYTES, SYN, Segment, State, Wire, congestion_control, states,
};

const ALPHA_ONE: u32 = 1024;
const G_SHIFT: u32 = 4;
const MIN_CWND_SEGS: u32 = 2;

impl State {
    /// The first word of the sender's DCTCP state.
    fn alpha(&self) -> u32 {
        self.ca_priv[0]
    }
}

#[track_caller]
fn with_connection(sender: &str, receiver: &str, test: impl FnOnce(Wire, Connection) + Send) {
    crate::with_connection(sender, receiver, Link::default(), test);
}

/// All segments from the sender, and their fate.
fn sent(events: &[Event]) -> impl Iterator<Item = (&Segment, Fate)> {
    events.iter().filter_map(|event| match event {
        Event::Forth(segment, fate) => Some((segment, *fate)),
        Event::Back(..) => None,
    })
}

fn reduced(cwnd_segs: u32, alpha: u32) -> u32 {
    (cwnd_segs - cwnd_segs * alpha / (2 * ALPHA_ONE)).max(MIN_CWND_SEGS)
}

/// Checks every reduction caused by ECE. Returns their number.
fn check_reductions(states: &[State]) -> usize {
    let mut reductions = 0;
    for pair in states.windows(2) {
        let [before, after] = pair else { unreachable!() };
        if after.ca_state != CA_CWR || after.ssthresh_segs == before.ssthresh_segs {
            continue;
        }
        // One ACK may end a reduction, which sets cwnd to ssthresh, and start the next.
        let ends = before.ca_state == CA_CWR;
        let cwnd_segs = if ends { before.ssthresh_segs } else { before.cwnd_segs };
        assert_eq!(after.ssthresh_segs, reduced(cwnd_segs, after.alpha()), "{before:?}, {after:?}");
        reductions += 1;
    }
    reductions
}

/// The increase of alpha per update: the fraction of marks times g = 1/16 (RFC 8257).
fn gains(states: &[State]) -> Vec<u32> {
    let changes = states.windows(2).filter(|pair| pair[0].alpha() != pair[1].alpha());
    let decayed = |alpha: u32| alpha - (alpha >> G_SHIFT);
    changes.map(|pair| pair[1].alpha() - decayed(pair[0].alpha())).collect()
}

#[test]
fn the_handshake_negotiates_ecn_and_is_ect_itself() {
    with_connection("dctcp", "dctcp", |mut wire, mut connection| {
        wire.send(&mut connection, 100 * MSS_BYTES, |_, _| Fate::Passes);
        let events = wire.take_events();
        // SYN and SYN-ACK are ECT too (3.6).
        let Event::Forth(syn, _) = &events[0] else { panic!("{events:?}") };
        assert!(syn.is(SYN | ECE | CWR) && syn.ecn() == ECN_ECT0, "{syn:?}");
        let Event::Back(syn_ack, _) = &events[1] else { panic!("{events:?}") };
        assert!(syn_ack.is(SYN | ACK | ECE) && !syn_ack.is(CWR), "{syn_ack:?}");
        assert_eq!(syn_ack.ecn(), ECN_ECT0, "{syn_ack:?}");
        assert!(sent(&events).all(|(segment, _)| segment.ecn() == ECN_ECT0));
        for state in states(&events) {
            assert_eq!(state.ecn_flags & ECN_NEGOTIATED, ECN_NEGOTIATED);
        }
    });
}

#[test]
fn without_ecn_it_is_reno() {
    // A receiver whose congestion control does not need ECN declines it on an ECT SYN.
    with_connection("dctcp", "reno", |mut wire, mut connection| {
        assert_eq!(congestion_control(&connection.sender), "reno");
        wire.send(&mut connection, 100 * MSS_BYTES, |_, _| Fate::Passes);
        let events = wire.take_events();
        assert!(sent(&events).skip(1).all(|(segment, _)| segment.ecn() == 0), "{events:?}");
    });
}

#[test]
fn set_after_the_handshake_it_is_reno() {
    with_connection("reno", "reno", |mut wire, mut connection| {
        connection.set_congestion_control(&wire, "dctcp");
        assert_eq!(congestion_control(&connection.sender), "reno");
        wire.send(&mut connection, 100 * MSS_BYTES, |_, _| Fate::Passes);
        assert!(sent(&wire.take_events()).all(|(segment, _)| segment.ecn() == 0));
    });
}

/// 3.2: all bytes that an ACK acknowledges were marked, and it has ECE; or none were.
#[test]
fn the_receiver_echoes_exactly_what_was_marked() {
    const SEGMENTS: usize = 5_000;
    const IRREGULAR: u64 = 0x8f16_71c3_0aa5_0fd1;
    with_connection("dctcp", "dctcp", |mut wire, mut connection| {
        wire.send(&mut connection, SEGMENTS * MSS_BYTES, |number, _| {
            if IRREGULAR >> (number % 64) & 1 == 1 { Fate::IsMarked } else { Fate::Passes }
        });
        let mut unacknowledged = Vec::new();
        let (mut acknowledged, mut marked) = (0, 0);
        for event in wire.take_events() {
            match event {
                Event::Forth(segment, _) => {
                    let end = segment.seq().wrapping_add(segment.payload_bytes());
                    if segment.payload_bytes() > 0 {
                        unacknowledged.push((end, segment.ecn() == ECN_CE));
                    }
                }
                Event::Back(ack, _) => {
                    let is_old =
                        |&&(end, _): &&(u32, bool)| (ack.ack().wrapping_sub(end) as i32) >= 0;
                    let count = unacknowledged.iter().take_while(is_old).count();
                    for (_, ce) in unacknowledged.drain(..count) {
                        assert_eq!(ce, ack.is(ECE), "{ack:?}");
                        marked += usize::from(ce);
                    }
                    acknowledged += count;
                }
            }
        }
        assert_eq!(acknowledged, SEGMENTS);
        assert!(marked > SEGMENTS / 3, "{marked}");
    });
}

/// 3.3: with every segment marked, alpha approaches 1 and the window halves once per window.
#[test]
fn with_all_marked_alpha_is_one_and_the_window_halves() {
    const MARKS_FROM: u32 = 300;
    with_connection("dctcp", "dctcp", |mut wire, mut connection| {
        wire.send(&mut connection, 2_000 * MSS_BYTES, |number, _| {
            if number >= MARKS_FROM { Fate::IsMarked } else { Fate::Passes }
        });
        let states = states(&wire.take_events());
        // 4.2: alpha is 1 before the first ACK, which ends the handshake's window.
        assert_eq!(states[0].alpha(), ALPHA_ONE - (ALPHA_ONE >> G_SHIFT));
        let reduces = |state: &State| state.ca_state == CA_CWR;
        let first = states.iter().position(reduces).expect("a reduction");
        let unmarked = gains(&states[..first]);
        assert!(unmarked.len() >= 3 && unmarked.iter().all(|&gain| gain == 0), "{unmarked:?}");
        // The window in which the marks start is marked in part only.
        let floor = |state: &State| state.cwnd_segs == MIN_CWND_SEGS;
        let floor = first + states[first..].iter().position(floor).expect("the floor");
        let marked = gains(&states[floor..]);
        let all = ALPHA_ONE >> G_SHIFT;
        assert!(marked.len() > 10 && marked.iter().all(|&gain| gain == all), "{marked:?}");
        assert_eq!(states.last().map(State::alpha), Some(ALPHA_ONE));

        assert!(check_reductions(&states) >= 5);
        assert_eq!(states.iter().map(|state| state.ssthresh_segs).min(), Some(MIN_CWND_SEGS));
    });
}

/// 3.3: M is the marked fraction; with a quarter marked, alpha approaches 1/4.
#[test]
fn with_a_quarter_marked_alpha_goes_to_a_quarter() {
    const MARKS_FROM: u32 = 3_000;
    const QUARTER_SEGS: u32 = 4;
    with_connection("dctcp", "dctcp", |mut wire, mut connection| {
        wire.send(&mut connection, 20_000 * MSS_BYTES, |number, _| {
            let is_marked = number >= MARKS_FROM && number % QUARTER_SEGS == 0;
            if is_marked { Fate::IsMarked } else { Fate::Passes }
        });
        let states = states(&wire.take_events());
        assert!(check_reductions(&states) > 10);
        // While a window has enough segments to distinguish a quarter.
        let reduces = |state: &&State| state.ca_state == CA_CWR && state.cwnd_segs >= 64;
        let reducing: Vec<State> = states.iter().filter(reduces).copied().collect();
        let gains = gains(&reducing);
        let quarter = (ALPHA_ONE / QUARTER_SEGS) >> G_SHIFT;
        assert!(gains.len() > 10, "{gains:?}");
        // The marks start within a window.
        assert!(gains[1..].iter().all(|&gain| gain.abs_diff(quarter) <= 1), "{gains:?}");
        let [first, last] = [reducing[0].alpha(), reducing[reducing.len() - 1].alpha()];
        assert!(ALPHA_ONE / 4 < last && last < first, "{first} {last}");
    });
}

/// 3.3: bursts of marks, as from a queue, leave windows for growth in between.
#[test]
fn every_reduction_is_by_half_of_alpha() {
    with_connection("dctcp", "dctcp", |mut wire, mut connection| {
        wire.send(&mut connection, 20_000 * MSS_BYTES, |number, _| {
            if number % 1_000 < 20 { Fate::IsMarked } else { Fate::Passes }
        });
        let states = states(&wire.take_events());
        assert!(check_reductions(&states) > 20);
        let smallest = states.iter().map(State::alpha).min().expect("states");
        assert!(smallest < ALPHA_ONE / 8, "{smallest}");
    });
}

/// 3.5: a loss halves the window, for any alpha.
#[track_caller]
fn check_loss(segments: usize, is_lost: impl Fn(u32) -> bool + Sync, ca_state: u32) {
    const QUIET_SEGMENTS: u32 = 2_000;
    with_connection("dctcp", "dctcp", |mut wire, mut connection| {
        wire.send(&mut connection, QUIET_SEGMENTS as usize * MSS_BYTES, |_, _| Fate::Passes);
        wire.send(&mut connection, segments * MSS_BYTES, |number, _| {
            if is_lost(number - QUIET_SEGMENTS) { Fate::IsLost } else { Fate::Passes }
        });
        let states = states(&wire.take_events());
        let reacts = |state: &State| state.ca_state == ca_state;
        let first = states.iter().position(reacts).expect("a reaction to the loss");
        let [before, after] = [&states[first - 1], &states[first]];
        assert!(before.alpha() < ALPHA_ONE * 3 / 4, "alpha would halve as well: {before:?}");
        assert_eq!(after.ssthresh_segs, before.cwnd_segs / 2, "{before:?}, {after:?}");
    });
}

#[test]
fn a_lost_segment_halves() {
    check_loss(500, |number| number == 50, CA_RECOVERY);
}

#[test]
fn a_timeout_halves() {
    // A whole flight.
    check_loss(8, |number| number < 8, CA_LOSS);
}
