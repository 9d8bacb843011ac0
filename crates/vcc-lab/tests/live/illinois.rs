//! TCP-Illinois: alpha and beta follow the connection's own delays and determine growth and
//! reduction. The arithmetic tests check the functions themselves.

use std::time::Duration;

use crate::wire::{CA_OPEN, CA_RECOVERY, Event, Fate, Link, MSS_BYTES, State};
use crate::with_connection;

const ALPHA_ONE: u64 = 128;
const ALPHA_MIN: u64 = 38;
const ALPHA_MAX: u64 = 1280;
const BETA_ONE: u32 = 64;
const BETA_MIN: u64 = 8;
const BETA_MAX: u64 = 32;
const WINDOW_THRESHOLD_SEGS: u32 = 15;

/// 4 ms without queues, and 40 segments in flight before a queue builds.
const LINK: Link =
    Link { delay: Duration::from_millis(4), per_segment: Duration::from_micros(100) };

/// `struct illinois` of guest/illinois.h, at the start of the connection's state.
struct Law {
    alpha: u32,
    beta: u32,
    base_rtt_us: u32,
    max_rtt_us: u32,
    sum_rtt_us: u64,
    samples: u32,
}

fn law(state: &State) -> Law {
    let words = &state.ca_priv;
    Law {
        alpha: words[0],
        beta: words[1],
        base_rtt_us: words[2],
        max_rtt_us: words[3],
        sum_rtt_us: u64::from(words[4]) | u64::from(words[5]) << 32,
        samples: words[6],
    }
}

/// f1 and f2 of the paper, above d1.
fn alpha(delay_us: u64, max_delay_us: u64) -> u64 {
    let d1_us = max_delay_us / 100;
    let (above_us, range_us) = (delay_us - d1_us, max_delay_us - d1_us);
    range_us * ALPHA_MAX / (range_us + above_us * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN)
}

fn beta(delay_us: u64, max_delay_us: u64) -> u64 {
    let (d2_us, d3_us) = (max_delay_us / 10, max_delay_us * 8 / 10);
    match delay_us {
        _ if delay_us <= d2_us => BETA_MIN,
        _ if delay_us >= d3_us => BETA_MAX,
        _ => {
            let above_us = delay_us - d2_us;
            (BETA_MIN * (d3_us - delay_us) + BETA_MAX * above_us) / (d3_us - d2_us)
        }
    }
}

/// Checks alpha and beta of the round that ended between the two states. Its last sample is unknown
/// except for its range; most rounds have many.
fn check_round(before: &Law, after: &Law) -> bool {
    let max_delay_us = u64::from(after.max_rtt_us - after.base_rtt_us);
    let delay_us = |last_rtt_us: u32| {
        let sum_us = before.sum_rtt_us + u64::from(last_rtt_us);
        sum_us / u64::from(before.samples + 1) - u64::from(after.base_rtt_us)
    };
    let (least_us, most_us) = (delay_us(after.base_rtt_us), delay_us(after.max_rtt_us));
    if least_us <= max_delay_us / 100 {
        return false; // The return to alpha_max may be delayed by theta.
    }
    let alphas = alpha(most_us, max_delay_us)..=alpha(least_us, max_delay_us);
    assert!(alphas.contains(&after.alpha.into()), "alpha {}, not {alphas:?}", after.alpha);
    let betas = beta(least_us, max_delay_us)..=beta(most_us, max_delay_us);
    assert!(betas.contains(&after.beta.into()), "beta {}, not {betas:?}", after.beta);
    true
}

#[test]
fn delay_governs_growth_and_reduction() {
    const LOSSES: [u32; 2] = [200, 8_000];
    with_connection("illinois", "reno", LINK, |mut wire, mut connection| {
        wire.send(&mut connection, 10_000 * MSS_BYTES, |number, _| {
            if LOSSES.contains(&number) { Fate::IsLost } else { Fate::Passes }
        });
        let events = wire.take_events();
        let acks: Vec<(u32, State)> = events
            .iter()
            .filter_map(|event| match event {
                Event::Back(ack, Some(state)) => Some((ack.ack(), *state)),
                _ => None,
            })
            .collect();
        let (mut rounds, mut growths, mut reductions) = (0, 0, 0);
        for pair in acks.windows(2) {
            let [(ack_before, before), (ack_after, after)] = pair else { unreachable!() };
            let (law_before, law_after) = (law(before), law(after));
            let is_open = before.ca_state == CA_OPEN && after.ca_state == CA_OPEN;
            let round_ended = law_after.samples == 0 && law_before.samples > 0;
            if is_open && round_ended && before.cwnd_segs >= WINDOW_THRESHOLD_SEGS {
                rounds += usize::from(check_round(&law_before, &law_after));
            }
            let avoids = is_open && before.cwnd_segs >= before.ssthresh_segs;
            if avoids && after.cwnd_segs != before.cwnd_segs {
                let acked_segs = ack_after.wrapping_sub(*ack_before) / MSS_BYTES as u32;
                let count = u64::from(before.cwnd_cnt + acked_segs);
                let grown_segs = count * u64::from(law_after.alpha) / ALPHA_ONE;
                let growth_segs = grown_segs / u64::from(before.cwnd_segs);
                assert_eq!(u64::from(after.cwnd_segs - before.cwnd_segs), growth_segs);
                assert_eq!(after.cwnd_cnt, 0);
                growths += 1;
            }
            if after.ca_state == CA_RECOVERY && before.ca_state != CA_RECOVERY {
                let taken_segs = before.cwnd_segs * law_before.beta / BETA_ONE;
                assert_eq!(after.ssthresh_segs, before.cwnd_segs - taken_segs);
                reductions += 1;
            }
        }
        assert!(rounds >= 10, "{rounds} rounds");
        assert!(growths >= 10, "{growths} growths");
        assert_eq!(reductions, LOSSES.len());
    });
}
