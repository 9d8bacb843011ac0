//! Several guests behind vcc share a threshold-marking link, DCTCP's use case (RFC 8257, 1; AC/DC,
//! 5): fair shares, and a queue at the threshold.

use crate::common::sim::{HostConfig, PathConfig, Runts, Scenario, Sim};
use crate::common::*;
use vcc_engine::sys;

/// 1 Gbit/s in segments of 1500 bytes.
const SEGMENT_US: u64 = 12;
const THRESHOLD_SEGS: u64 = 20;
const WARM_UP_US: u64 = 200_000;
const RUN_US: u64 = 1_000_000;

fn host(opens: bool, number: u32, total_bytes: i64) -> HostConfig {
    HostConfig {
        opens,
        ecn: false,
        native: false,
        iss: 0xffff_0000u32.wrapping_add(number * 7919),
        options: (sys::OPT_MSS | sys::OPT_WSCALE | sys::OPT_SACK_PERMITTED | sys::OPT_TIMESTAMPS)
            as u16,
        mss_option: 1460,
        wscale: 7,
        option_room_bytes: 20,
        // An overlay that would fill any queue.
        initial_cwnd_segs: 5000,
        gso_segs: 1,
        runts: Runts::Never,
        probes_tail: false,
        fin_on_data: false,
        total_bytes,
        burst_bytes: i64::MAX / 4,
        pause_us: 1000,
        capacity_bytes: 8_000_000,
        reading_us: (10_000_000, 0),
        shrinks: false,
        resets_at: None,
    }
}

struct Shares {
    jain: f64,
    /// Relative to the link's rate.
    used: f64,
    queue_segs: f64,
    longest_queue_segs: f64,
    reductions: u32,
}

/// `count` flows under the underlay, between separate hosts.
fn share(name: &str, count: u32) -> Shares {
    let mut sims: Vec<Sim> = Vec::new();
    for number in 0..count {
        let params = underlay(name);
        let mut sim = Sim::new(Scenario {
            seed: number.into(),
            params,
            guest: host(true, number, i64::MAX / 8),
            peer: host(false, number, 0),
            to_peer: PathConfig {
                delay_us: 100,
                spacing_us: SEGMENT_US,
                mark_above_us: THRESHOLD_SEGS * SEGMENT_US,
                ..PathConfig::default()
            },
            to_guest: PathConfig {
                delay_us: 100,
                spacing_us: 1,
                // Otherwise the flows synchronise, and marks always hit the same one.
                jitter_us: 40,
                ..PathConfig::default()
            },
            tap_loss_permille: 0,
            far: Some(params),
            counted_before: sys::vcc_feedback::default(),
        });
        if let Some(first) = sims.first() {
            sim.share_link(first);
        }
        sim.open();
        sims.push(sim);
    }
    let start_us = sims[0].now_us;
    let mut before = Vec::new();
    let (mut queues_us, mut samples, mut longest_us) = (0, 0, 0);
    loop {
        let next = (0..sims.len()).min_by_key(|&number| sims[number].next_event()).unwrap();
        sims[next].advance();
        let now_us = sims[next].now_us;
        if now_us > start_us + WARM_UP_US {
            if before.is_empty() {
                before = sims.iter().map(|sim| sim.peer.receiver.rcv_nxt).collect();
            }
            let queue_us = sims[next].queue_us();
            queues_us += queue_us;
            samples += 1;
            longest_us = longest_us.max(queue_us);
        }
        if now_us > start_us + WARM_UP_US + RUN_US {
            break;
        }
    }
    let bytes: Vec<f64> = sims
        .iter()
        .zip(before)
        .map(|(sim, before)| (sim.peer.receiver.rcv_nxt - before) as f64)
        .collect();
    let sum: f64 = bytes.iter().sum();
    let squares: f64 = bytes.iter().map(|bytes| bytes * bytes).sum();
    for sim in &sims {
        assert!(sim.laws().agreed());
        assert_eq!((sim.guest.sender.retransmissions, sim.flow().forged), (0, 0));
    }
    let segs = |us: f64| us / SEGMENT_US as f64;
    Shares {
        jain: sum * sum / (squares * f64::from(count)),
        used: sum / f64::from(sims[0].flow().mss_bytes) / segs(RUN_US as f64),
        queue_segs: segs(queues_us as f64 / f64::from(samples)),
        longest_queue_segs: segs(longest_us as f64),
        reductions: sims.iter().map(|sim| sim.flow().reductions).sum(),
    }
}

#[test]
fn dctcp_shares_fairly_and_keeps_the_queue_at_its_threshold() {
    for count in [2, 5] {
        let shares = share("dctcp", count);
        let Shares { jain, used, queue_segs, longest_queue_segs, reductions } = shares;
        let figures = format!(
            "{count} flows: Jain {jain:.4}, {used:.3} of the link, a queue of {queue_segs:.1} \
             segments, {longest_queue_segs:.1} at most, {reductions} reductions"
        );
        assert!(jain > 0.95, "{figures}");
        assert!(used > 0.95, "{figures}");
        let threshold = THRESHOLD_SEGS as f64;
        assert!(queue_segs < 1.5 * threshold, "{figures}");
        // RFC 8257, 3.3: reacts to the extent of congestion.
        let reno = share("reno-ecn", count);
        assert!(used > reno.used - 0.01, "{figures}; reno-ecn uses {:.3}", reno.used);
        assert!(longest_queue_segs < 6.0 * threshold, "{figures}");
    }
}

#[test]
fn incast_with_windows_of_one_segment() {
    // AC/DC, 5.2: more flows than the path has room for windows of two segments.
    let shares = share("dctcp", 40);
    assert!(shares.jain > 0.9, "Jain {}", shares.jain);
    assert!(shares.used > 0.95);
    assert!(shares.queue_segs < 48.0, "{} segments", shares.queue_segs);
}
