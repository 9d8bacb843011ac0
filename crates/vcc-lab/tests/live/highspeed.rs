//! RFC 3649: the kernel applies the table, which the arithmetic tests check.

use crate::wire::{CA_OPEN, CA_RECOVERY, Fate, Link, MSS_BYTES, State, states};
use crate::with_connection;

/// Rows of appendix B: largest window, a(w), b(w) in 256ths.
const ROWS: [(u32, u32, u32); 9] = [
    (38, 1, 128),
    (118, 2, 112),
    (221, 3, 104),
    (347, 4, 98),
    (495, 5, 93),
    (663, 6, 89),
    (851, 7, 86),
    (1058, 8, 83),
    (1284, 9, 81),
];

fn row(cwnd_segs: u32) -> (u32, u32) {
    let row = ROWS.iter().find(|&&(up_to, ..)| cwnd_segs <= up_to);
    let &(_, a, b) = row.unwrap_or_else(|| panic!("no row for {cwnd_segs}"));
    (a, b)
}

fn in_congestion_avoidance(state: &State) -> bool {
    state.ca_state == CA_OPEN && state.cwnd_segs >= state.ssthresh_segs
}

/// Checks every ACK that grew the window. Returns their number per a(w).
fn check_growth(states: &[State]) -> Vec<usize> {
    let mut acks = vec![0; ROWS.len() + 1];
    for pair in states.windows(2) {
        let [before, after] = pair else { unreachable!() };
        let same = (after.cwnd_segs, after.cwnd_cnt) == (before.cwnd_segs, before.cwnd_cnt);
        if same || !in_congestion_avoidance(before) || !in_congestion_avoidance(after) {
            continue;
        }
        let (a, _) = row(before.cwnd_segs);
        let count = before.cwnd_cnt + a;
        let expected = if count >= before.cwnd_segs {
            (before.cwnd_segs + 1, count - before.cwnd_segs)
        } else {
            (before.cwnd_segs, count)
        };
        assert_eq!((after.cwnd_segs, after.cwnd_cnt), expected, "{before:?}, {after:?}");
        acks[a as usize] += 1;
    }
    acks
}

/// The window before each fast recovery, and after its reduction.
fn reductions(states: &[State]) -> Vec<(u32, u32)> {
    let recovers = |state: &State| state.ca_state == CA_RECOVERY;
    let begins = states.windows(2).filter(|pair| !recovers(&pair[0]) && recovers(&pair[1]));
    begins.map(|pair| (pair[0].cwnd_segs, pair[1].ssthresh_segs)).collect()
}

/// A transfer of `segments` with losses at these.
#[track_caller]
fn transfer(segments: usize, losses: &'static [u32]) -> Vec<State> {
    let mut seen = Vec::new();
    let into = &mut seen;
    with_connection("highspeed", "reno", Link::default(), move |mut wire, mut connection| {
        wire.send(&mut connection, segments * MSS_BYTES, |number, _| {
            if losses.contains(&number) { Fate::IsLost } else { Fate::Passes }
        });
        *into = states(&wire.take_events());
    });
    seen
}

#[test]
fn large_windows_grow_by_a_and_shrink_by_b() {
    let states = transfer(60_000, &[1_500, 30_000]);
    if states.is_empty() {
        return;
    }
    let acks = check_growth(&states);
    assert!(acks.iter().filter(|&&count| count > 100).count() >= 2, "{acks:?}");

    let [first, second] = reductions(&states)[..] else { panic!("two losses") };
    assert_eq!(first.1, first.0.div_ceil(2), "out of slow start, as Linux does");
    let (a, b) = row(second.0);
    assert!(a > 3, "{second:?}");
    assert_eq!(second.1, second.0 - second.0 * b / 256, "{second:?}");
}

#[test]
fn small_windows_are_standard_tcp() {
    let states = transfer(600, &[20, 500]);
    if states.is_empty() {
        return;
    }
    let acks = check_growth(&states);
    assert!(acks[1] > 100, "{acks:?}");
    assert_eq!(acks[1], acks.iter().sum::<usize>(), "{acks:?}");
    for (cwnd_segs, ssthresh_segs) in reductions(&states) {
        assert_eq!(ssthresh_segs, cwnd_segs.div_ceil(2));
    }
}
