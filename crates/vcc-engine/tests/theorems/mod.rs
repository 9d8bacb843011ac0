//! vCC's theorems (appendix A) over generated sequences of events: the paper's NewReno guest behind
//! the engine sends the same packets at the same events as a native sender with ECN or with DCTCP.
//! docs/proofs.md says where it does not, on purpose.

mod claims;
mod counts;
mod guest;
mod native;
mod peer;
mod reno;
mod run;

use counts::Counts;
use run::Run;

/// How many events there are; `make verify` sets millions.
const EVENTS_VARIABLE: &str = "VCC_THEOREM_EVENTS";
const EVENTS_A_RUN: u64 = 1500;

fn run_all(dctcp: bool) {
    let events: u64 = match std::env::var(EVENTS_VARIABLE) {
        Ok(events) => events.parse().expect("a number of events"),
        Err(_) => 60_000,
    };
    let mut total = Counts::default();
    for seed in 0..events.div_ceil(EVENTS_A_RUN) {
        let mut run = Run::new(seed, dctcp);
        run.run(EVENTS_A_RUN);
        total.add(&run.counts);
    }
    println!("{total:?}");
    println!(
        "figure: {}: {} events, at {:.1} % of them as the native sender, at the others as docs/proofs.md names",
        if dctcp { "DCTCP" } else { "ECN" },
        total.events,
        100.0 * total.equal as f64 / total.events as f64,
    );
    // The sequences must meet all that the theorems speak of, and the departures be the exception.
    assert!(total.equal * 10 >= total.events * 8 && total.equal_sent * 10 >= total.events * 7);
    let met = [
        total.reductions,
        total.recoveries,
        total.partial_acks,
        total.timeouts,
        total.restarts,
        total.duplicates,
        total.edge_kept,
        total.repeated,
        total.caught_up,
        total.below,
        10 * total.unused,
    ];
    assert!(met.iter().all(|&count| count * 3_000 >= total.events), "{total:?}");
}

#[test]
fn a_guest_without_ecn_sends_what_an_ecn_sender_would() {
    run_all(false);
}

#[test]
fn a_guest_without_ecn_sends_what_a_dctcp_sender_would() {
    run_all(true);
}
