//! From a file's text to a policy, with all findings: those of the reader, and those that only show
//! where several values meet.

mod abilities;
mod pool_scopes;
mod pools;
mod ports;
mod reach;
mod rules;
mod size;
mod treatment;

use crate::file::{self, PolicyFile};
use crate::policy::Policy;
use crate::problem::{Findings, Problem, Problems};

/// A policy that can be used, and warnings about it.
#[derive(Clone, Debug)]
pub struct Checked {
    pub policy: Policy,
    pub warnings: Vec<Problem>,
}

impl Policy {
    /// Reads and checks the text of a policy file. All problems are reported at once, under the
    /// file's name.
    pub fn parse(text: &str, file_name: &str) -> Result<Checked, Problems> {
        let mut findings = Findings::new(text);
        let read = file::read(text, &mut findings);
        let policy = policy(&read, &mut findings);
        let (errors, problems) = findings.settle(file_name);
        if errors > 0 {
            return Err(Problems { problems, errors });
        }
        Ok(Checked { policy, warnings: problems })
    }
}

impl Policy {
    /// Warns of devices of this host itself that patterns of its `text` match: their names, and what they
    /// are.
    pub fn warn_of_host_devices(
        &self,
        text: &str,
        file_name: &str,
        devices: &[(String, String)],
    ) -> Vec<Problem> {
        let mut findings = Findings::new(text);
        ports::warn_of_host_devices(self, devices, &mut findings);
        findings.settle(file_name).1
    }
}

/// Builds the policy from the valid parts of the file and adds the errors to the findings.
fn policy(file: &PolicyFile, findings: &mut Findings<'_>) -> Policy {
    let ports = ports::check(file, findings);
    let pools = pools::check(file, findings);
    let rules = rules::check(file, &pools, findings);
    pools::check_use(file, findings);
    let policy =
        Policy { ports, pools: pools.into_pools(), rules, has_default: file.default.is_some() };
    abilities::check(file, &policy, findings);
    pool_scopes::check(file, &policy, findings);
    // The cost of the rest grows with the policy, so its bounds are checked first.
    if size::check(file, &policy, findings) {
        reach::check(file, &policy, findings);
    }
    policy
}
