//! What a report says in a word.

use super::{Report, Verdict};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Not every case has as many valid runs as were asked for.
    NotValid,
    Reproduced,
    NotReproduced,
    /// Only some cases were run, and what they show is what it should be.
    PartHolds,
    PartFails,
    /// Only cases were run of which nothing is expected.
    PartUnjudged,
}

impl Outcome {
    pub(super) fn of(report: &Report) -> Self {
        let all_hold = verdicts(report).all(|verdict| verdict.holds);
        match (report.valid, report.complete) {
            (false, _) => Self::NotValid,
            (true, true) if report.reproduced => Self::Reproduced,
            (true, true) => Self::NotReproduced,
            (true, false) if verdicts(report).next().is_none() => Self::PartUnjudged,
            (true, false) if all_hold => Self::PartHolds,
            (true, false) => Self::PartFails,
        }
    }
}

/// Of all cases.
pub(super) fn verdicts(report: &Report) -> impl Iterator<Item = &Verdict> {
    report.cases.iter().flat_map(|case| &case.verdicts)
}
