//! Newer code repeats the first run of each case: if frames and figures are the same, so are the other runs.
//!
//! In virtual time a run depends on its seed and on the code alone, so a repetition finds whether a change of the
//! code changes anything on its path, in a fraction of the time of all runs.

use super::{Record, rounded};
use crate::digest::Digest;
use crate::report::{CaseReport, Report, when};
use crate::result::Backend;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The repetition that confirmed a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// The minute of its end, as people write it.
    pub measured: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vcc_version: Option<String>,
}

/// Of each case with a valid run; none in real time, where no run is like another.
pub(super) fn fingerprints(report: &Report) -> BTreeMap<String, String> {
    let cases = report.cases.iter().filter(|_| report.backend == Backend::Virtual);
    cases.filter_map(|case| Some((case.name.clone(), fingerprint(case)?))).collect()
}

/// A digest of the first valid run: of its seed, its frames, and its figures as a record has them.
fn fingerprint(case: &CaseReport) -> Option<String> {
    let run = case.valid_runs().next()?;
    let mut digest = Digest::default();
    digest.add(&run.seed.to_string());
    if let Some(log) = &run.frame_log {
        digest.add(&format!("{} {}", log.frames, log.hash));
    }
    for (metric, value) in &run.metrics {
        digest.add(&format!("{metric} {}", rounded(*value)));
    }
    Some(digest.text())
}

impl Record {
    /// Whether a repetition can confirm it: each case has a fingerprint.
    pub fn has_fingerprints(&self) -> bool {
        !self.fingerprints.is_empty()
            && self.rows.iter().all(|row| self.fingerprints.contains_key(&row.case))
    }

    /// The cases of which the first valid run is another in this report of the same experiment; one that either
    /// does not have is among them.
    pub fn differing_cases(&self, report: &Report) -> Vec<String> {
        let again = fingerprints(report);
        let names = self.fingerprints.keys().chain(again.keys());
        let mut differing: Vec<String> = names
            .filter(|name| self.fingerprints.get(*name) != again.get(*name))
            .cloned()
            .collect();
        differing.sort();
        differing.dedup();
        differing
    }

    /// Its figures are those of this report's code. [`Self::differing_cases`] must be empty.
    pub(in crate::report) fn confirm(&mut self, report: &Report) {
        self.sources = report.sources.clone();
        self.confirmed = Some(Confirmation {
            measured: when::utc_or_unknown(report.finished_unix_s),
            vcc_version: report.vcc_version.clone(),
        });
    }
}
