//! From what was read to a policy: what only shows where several values meet.

mod pools;
mod ports;
mod reach;
mod rules;
mod size;
mod treatment;

use crate::file::PolicyFile;
use crate::policy::Policy;
use crate::problem::Findings;

/// As good a policy as can be made of the file, with whatever is wrong with it found.
pub(crate) fn policy(file: &PolicyFile, findings: &mut Findings<'_>) -> Policy {
    let ports = ports::check(file, findings);
    let pools = pools::check(file, findings);
    let rules = rules::check(file, &pools, findings);
    pools::check_use(file, findings);
    let policy =
        Policy { ports, pools: pools.into_pools(), rules, has_default: file.default.is_some() };
    // The rest costs time by the size of the policy, so its bounds come first.
    if size::check(file, &policy, findings) {
        reach::check(file, &policy, findings);
    }
    policy
}
