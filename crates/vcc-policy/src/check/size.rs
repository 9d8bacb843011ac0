//! The capacity of the datapath's tables.

use crate::file::PolicyFile;
use crate::policy::Policy;
use crate::problem::Findings;
use crate::{MAX_PREFIXES, MAX_RULES, MAX_SETS};

/// Does it fit?
pub(super) fn check(file: &PolicyFile, policy: &Policy, findings: &mut Findings<'_>) -> bool {
    let Some(rules) = &file.rules else { return true };
    if policy.rules.len() > MAX_RULES {
        let first_too_many = rules.value.get(MAX_RULES - 1).unwrap_or(&rules.value[0]);
        findings.error_of_all(
            &first_too_many.span,
            format!(
                "too many rules: {}; at most {} are possible",
                rules.value.len(),
                MAX_RULES - 1
            ),
        );
        return false;
    }
    let compiled = policy.compile();
    let mut fits = true;
    for (what, count, max) in [
        ("networks", compiled.prefixes.len(), MAX_PREFIXES),
        ("different sets of ports, networks and VLANs", compiled.sets.len(), MAX_SETS),
    ] {
        if count > max {
            fits = false;
            let message =
                format!("too many {what} in all rules: {count}; at most {max} are possible");
            findings.error_of_all(&rules.span, message);
        }
    }
    fits
}
