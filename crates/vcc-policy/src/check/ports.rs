//! The devices that are ports.

use glob::Pattern;

use crate::MAX_SELECTORS;
use crate::file::{PolicyFile, PortTable};
use crate::port::PortSelector;
use crate::problem::Findings;
use crate::text::shortened;

pub(super) fn check(file: &PolicyFile, findings: &mut Findings<'_>) -> Vec<PortSelector> {
    // After an error, an unreadable part of the file may have been a port.
    if file.ports.as_ref().is_none_or(|ports| ports.value.is_empty()) && findings.errors() == 0 {
        findings.warning(
            &findings.end(),
            "there are no [[ports]]: with this policy a daemon detaches from all devices",
        );
    }
    let ports = || file.ports.iter().flat_map(|ports| &ports.value);
    if let Some(first_too_many) = ports().nth(MAX_SELECTORS) {
        let count = ports().count();
        findings.error(
            &first_too_many.span,
            format!("too many [[ports]]: {count}; at most {MAX_SELECTORS} are possible"),
        );
        return Vec::new();
    }
    let mut before: Vec<(&Pattern, usize)> = Vec::new();
    let mut selectors = Vec::new();
    for port in ports() {
        let PortTable { device, tenant, max_flows } = &port.value;
        let Some(device) = device else {
            if port.is_sound {
                findings.error(&port.span, "`device` is missing, like device = \"vnet*\"");
            }
            continue;
        };
        let pattern = &device.value.0;
        if let Some((wider, line)) = before.iter().find(|(wider, _)| covers(wider, pattern)) {
            findings.warning(
                &device.span,
                format!(
                    "never reached: `{}` in line {line} matches all of these devices first",
                    shortened(wider.as_str())
                ),
            );
        }
        before.push((pattern, findings.line(&device.span)));
        selectors.push(PortSelector {
            device: pattern.clone(),
            tenant: tenant.as_ref().map(|tenant| tenant.value.0.clone()),
            max_flows: max_flows.as_ref().map_or(PortSelector::DEFAULT_MAX_FLOWS, |n| n.value.0),
        });
    }
    selectors
}

/// Does every device that matches `narrow` match `wide`? Only where it is plain to see.
fn covers(wide: &Pattern, narrow: &Pattern) -> bool {
    let is_plain = |pattern: &str| !pattern.contains(['*', '?', '[']);
    // A prefix with `*` matches all names that begin with a longer literal prefix.
    let prefix = wide.as_str().strip_suffix('*').filter(|prefix| is_plain(prefix));
    wide == narrow
        || (is_plain(narrow.as_str()) && wide.matches(narrow.as_str()))
        || prefix.is_some_and(|prefix| narrow.as_str().starts_with(prefix))
}
