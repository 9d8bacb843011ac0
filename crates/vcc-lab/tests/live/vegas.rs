//! TCP Vegas: it decides by the connection's own delays and causes no loss. The arithmetic tests
//! check that it settles with alpha to beta segments queued.

use std::time::Duration;

use crate::wire::{CA_OPEN, Fate, Link, MSS_BYTES, State, states};
use crate::with_connection;

const ALPHA_SEGS: u64 = 2;
const BETA_SEGS: u64 = 4;
const FEW_SAMPLES: u32 = 2;

/// 10 ms without queues, and 20 segments in flight before a queue builds.
const LINK: Link =
    Link { delay: Duration::from_millis(10), per_segment: Duration::from_micros(500) };

/// `struct vegas` of guest/vegas.h, at the start of the connection's state.
struct Law {
    base_rtt_us: u32,
    min_rtt_us: u32,
    samples: u32,
}

fn law(state: &State) -> Law {
    let words = &state.ca_priv;
    Law { base_rtt_us: words[0], min_rtt_us: words[1], samples: words[2] }
}

/// Vegas' decision in congestion avoidance for a round with that smallest sample.
fn decision(cwnd_segs: u32, rtt_us: u32, base_rtt_us: u32) -> i64 {
    let delay_us = u64::from(rtt_us - base_rtt_us);
    match u64::from(cwnd_segs) * delay_us / u64::from(base_rtt_us) {
        diff_segs if diff_segs > BETA_SEGS => -1,
        diff_segs if diff_segs < ALPHA_SEGS => 1,
        _ => 0,
    }
}

#[test]
fn delay_ends_slow_start_and_decides_from_there() {
    with_connection("vegas", "reno", LINK, |mut wire, mut connection| {
        wire.send(&mut connection, 3_600 * MSS_BYTES, |_, _| Fate::Passes);
        let states = states(&wire.take_events());
        let mut decisions = 0;
        for pair in states.windows(2) {
            let [before, after] = pair else { unreachable!() };
            assert_eq!(after.ca_state, CA_OPEN);
            let (law_before, law_after) = (law(before), law(after));
            let round_ended = law_after.samples == 0 && law_before.samples > FEW_SAMPLES;
            if !round_ended || before.cwnd_segs < before.ssthresh_segs {
                continue;
            }
            // The last sample is unknown; it may or may not have been the smallest.
            let by = |rtt_us| decision(before.cwnd_segs, rtt_us, law_after.base_rtt_us);
            let (least, most) = (by(law_before.min_rtt_us), by(law_after.base_rtt_us));
            let change = i64::from(after.cwnd_segs) - i64::from(before.cwnd_segs);
            assert!((least..=most).contains(&change), "{change}: {before:?}, {after:?}");
            decisions += 1;
        }
        // Slow start ended without a loss. The window since then depends on the machine: a late one
        // receives ACKs in bursts and has few rounds.
        assert!(decisions >= 20, "{decisions} decisions");
    });
}
