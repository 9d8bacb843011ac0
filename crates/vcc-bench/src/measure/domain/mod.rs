//! The cost of the driver domain's port (`vcc-domain`): frames through it, in memory.

mod case;
mod cases;
mod talk;

use std::time::Duration;

use vcc_net::heap;
use vcc_port::Result;
use vcc_results::report::bench::Spread;

use case::{SEG_BYTES, SEGS_PER_TURN};
use cases::Subject;

/// Turns of each case in a round. Then the other connections have theirs, so that a disturbance of
/// the machine hits all alike.
const TURNS_PER_ROUND: u32 = 10;

/// The cost of a case.
#[derive(Clone, Debug)]
pub struct SegmentCost {
    pub name: &'static str,
    pub what: &'static str,
    /// Nanoseconds for a segment of 1440 bytes, or for an ACK where the case has no data.
    pub ns: Spread,
    /// Payload, of a bulk transfer with its ACKs.
    pub gbit_s: Option<Spread>,
}

/// Measures every case in `rounds` interleaved rounds.
pub fn domain(rounds: u32) -> Result<Vec<SegmentCost>> {
    // As `vcc domain` does.
    heap::keep_free_memory();
    let mut subjects = cases::subjects()?;
    let count: usize = subjects.iter().map(|subject| subject.cases.len()).sum();
    let mut samples_ns = vec![Vec::new(); count];
    // The first round warms caches and branch predictors and is not measured.
    for round in 0..=rounds {
        let measured_ns: Vec<f64> =
            subjects.iter_mut().map(measure).collect::<Result<Vec<_>>>()?.concat();
        for (samples_ns, ns) in samples_ns.iter_mut().zip(measured_ns) {
            samples_ns.extend((round > 0).then_some(ns));
        }
    }
    let cases = subjects.iter().flat_map(|subject| subject.cases);
    Ok(cases
        .zip(samples_ns)
        .map(|(case, samples_ns)| {
            let gbit_s = |ns: &f64| f64::from(SEG_BYTES * 8) / ns;
            SegmentCost {
                name: case.name,
                what: case.what,
                gbit_s: case
                    .bulk
                    .then(|| Spread::from_samples(samples_ns.iter().map(gbit_s).collect())),
                ns: Spread::from_samples(samples_ns),
            }
        })
        .collect())
}

/// Nanoseconds per segment of each case, over one round.
fn measure(subject: &mut Subject) -> Result<Vec<f64>> {
    let mut taken = vec![Duration::ZERO; subject.cases.len()];
    for _ in 0..TURNS_PER_ROUND {
        for (case, taken) in subject.cases.iter().zip(&mut taken) {
            *taken += subject.talk.turn(case)?;
        }
    }
    let segs = f64::from(TURNS_PER_ROUND * SEGS_PER_TURN);
    Ok(taken.into_iter().map(|taken| taken.as_nanos() as f64 / segs).collect())
}
