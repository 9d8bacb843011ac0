//! The cost of the datapath: its programs under BPF_PROG_RUN, without the noise of devices. And that
//! of the port in user space, in memory.

mod case;
mod cases;
mod connection;
mod connections;
mod domain;
mod flood;
mod harness;
mod loaded;
mod rewriter;
mod ruled;

use vcc_engine::{Underlay, sys};
use vcc_port::{AttachOptions, Datapath, Error, Result, counters};
use vcc_results::report::bench::Spread;

use case::{Case, RUNS_PER_ROUND};
pub use cases::REWRITER;
use connection::{ACCURATE, AGREED, GUEST, PEER, establish, key};
pub use connections::{BusyHost, CrowdCost, connections};
pub use domain::{SegmentCost, domain};
pub use flood::SynFlood;
use harness::Harness;

/// Nanoseconds per run of a case.
#[derive(Clone, Debug)]
pub struct Measurement {
    pub name: &'static str,
    pub what: &'static str,
    /// The measured time, including the cost of the harness.
    pub gross_ns: Spread,
    /// Without the cost of the harness, which was measured just before.
    pub ns: Spread,
}

/// A datapath with the cases to measure.
struct Subject {
    datapath: Datapath,
    harness: Harness,
    cases: Vec<Case>,
}

impl Subject {
    /// One without a policy.
    fn plain() -> Result<Self> {
        let datapath = Datapath::load_with_yardsticks(None, &AttachOptions::default())?;
        establish(&datapath, PEER)?;
        establish(&datapath, AGREED)?;
        establish(&datapath, ACCURATE)?;
        let cases = cases::cases(datapath.flow_tag(&key(GUEST, AGREED))?);
        Ok(Self { harness: Harness::load(&datapath)?, datapath, cases })
    }
}

/// Measures every case in `rounds` interleaved rounds, and those of an underlay of
/// [`vcc_port::Underlays::use_here`].
pub fn datapath(rounds: u32, loaded: Option<Underlay>) -> Result<Vec<Measurement>> {
    let mut subjects = vec![Subject::plain()?];
    for size in ruled::SIZES {
        subjects.push(ruled::subject(size)?);
    }
    if let Some(underlay) = loaded {
        subjects.push(loaded::subject(underlay)?);
    }
    let count: usize = subjects.iter().map(|subject| subject.cases.len()).sum();
    let mut samples = vec![(Vec::new(), Vec::new()); count];
    // The first round warms caches and branch predictors and is not measured.
    for round in 0..=rounds {
        let cases = subjects.iter_mut().flat_map(|Subject { harness, cases, .. }| {
            let harness = &*harness;
            cases.iter_mut().map(move |case| (harness, case))
        });
        for ((harness, case), (net, gross)) in cases.zip(&mut samples) {
            let turns = RUNS_PER_ROUND / case.at_once;
            let mut sums = [0.0; 2];
            for _ in 0..turns {
                let took = harness.run(case, case.at_once)?;
                sums = [sums[0] + took[0], sums[1] + took[1]];
            }
            let [own_ns, gross_ns] = sums.map(|sum| sum / f64::from(turns));
            if round > 0 {
                gross.push(gross_ns);
                net.push(gross_ns - own_ns);
            }
        }
    }
    subjects.iter().try_for_each(|subject| require_valid(&subject.datapath))?;
    let rewritten = subjects[0].harness.windows_rewritten()?;
    if rewritten != u64::from(rounds + 1) * u64::from(RUNS_PER_ROUND) {
        return Err(invalid(format!("the yardstick rewrote {rewritten} windows")));
    }
    let measured = subjects.iter().flat_map(|subject| &subject.cases).zip(samples);
    Ok(measured
        .map(|(case, (net, gross))| Measurement {
            name: case.name,
            what: case.what,
            ns: Spread::from_samples(net),
            gross_ns: Spread::from_samples(gross),
        })
        .collect())
}

fn invalid(why: String) -> Error {
    Error::System { doing: "measure the datapath".into(), why }
}

/// An error unless every segment took the path that its case is about.
fn require_valid(datapath: &Datapath) -> Result<()> {
    let counted = datapath.counters()?;
    let never = [
        counters::BAD_OPTIONS,
        counters::CONTENDED,
        counters::DROPPED,
        counters::FORGED,
        counters::MALFORMED,
        counters::REPORT_LOST,
        counters::REWRITE_FAILED,
    ];
    if let Some(counter) = never.into_iter().find(|counter| counted.get(*counter) > 0) {
        let times = counted.get(counter);
        return Err(invalid(format!("{times} segments were `{}`", counter.meaning)));
    }
    for flow in datapath.flows()? {
        let heard = flow.state.has(sys::FLOW_FEEDBACK_HEARD);
        let lost = flow.state.has(sys::FLOW_FEEDBACK_LOST) || flow.state.has(sys::FLOW_UNHEARD);
        if heard != flow.state.has(sys::FLOW_FEEDBACK) || lost {
            return Err(invalid("the datapath did not accept the reports".into()));
        }
    }
    Ok(())
}
