//! What a segment costs with few and with many connections, in random order.

mod busy;
mod crowd;
mod vary;

use vcc_port::Result;
use vcc_results::report::bench::Spread;

pub use busy::BusyHost;
use crowd::{Crowd, Took};

/// Runs of a case in a row, at least: all connections have their turn.
const RUNS_PER_ROUND: u32 = 100_000;

/// Nanoseconds per run of a case, net of the harness, at a host with so many connections.
#[derive(Clone, Debug)]
pub struct CrowdCost {
    pub connections: u32,
    pub name: &'static str,
    pub what: &'static str,
    pub ns: Spread,
    /// The median, over that with the first number of connections.
    pub over_fewest: f64,
}

const CASES: [(&str, &str); 3] = [
    ("from_guest_data", "new data of each connection in turn"),
    ("to_guest_ack", "ACKs of them"),
    ("yardstick", "an entry looked up and locked, and four of its cache lines touched"),
];

/// Measures each number of connections in `rounds` interleaved rounds.
pub fn connections(sizes: &[u32], rounds: u32) -> Result<Vec<CrowdCost>> {
    let mut crowds = sizes.iter().map(|size| Crowd::alone(*size)).collect::<Result<Vec<_>>>()?;
    crowds.iter().try_for_each(Crowd::prepare_yardstick)?;
    let mut samples = vec![[const { Vec::new() }; CASES.len()]; sizes.len()];
    // The first round warms caches and is not measured.
    for round in 0..=rounds {
        for (crowd, samples) in crowds.iter_mut().zip(&mut samples) {
            let rounds = RUNS_PER_ROUND.div_ceil(crowd.connections);
            let took = [crowd.send_data(rounds)?, crowd.send_acks(rounds)?, crowd.touch(rounds)?];
            for (samples, Took { harness_ns, gross_ns }) in samples.iter_mut().zip(took) {
                if round > 0 {
                    samples.push(gross_ns - harness_ns);
                }
            }
        }
    }
    crowds.iter().try_for_each(Crowd::require_valid)?;
    let spreads: Vec<_> =
        samples.into_iter().map(|samples| samples.map(Spread::from_samples)).collect();
    let mut costs = Vec::new();
    for (connections, of_all) in sizes.iter().zip(&spreads) {
        for (at, (name, what)) in CASES.into_iter().enumerate() {
            let (connections, ns) = (*connections, of_all[at]);
            let over_fewest = ns.median / spreads[0][at].median;
            costs.push(CrowdCost { connections, name, what, ns, over_fewest });
        }
    }
    Ok(costs)
}
