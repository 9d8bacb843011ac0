//! What the ports of a rule can do: those in the kernel have no buffer, and those in front of a device do
//! not see the guest's receive ring.

use std::collections::HashMap;

use super::ports;
use crate::affiliation::Affiliation;
use crate::file::{Located, PolicyFile, PortTable, TreatmentKeys};
use crate::keys::{KEYS, Key, Scope, Surface};
use crate::listing::listing;
use crate::policy::Policy;
use crate::problem::Findings;
use crate::rule::Rule;
use crate::text::shortened;

/// The first port of each affiliation.
type Firsts<'a> = HashMap<Affiliation<'a>, &'a PortTable>;

pub(super) fn check(file: &PolicyFile, policy: &Policy, findings: &mut Findings<'_>) {
    let (mut devices, mut detours) = (Firsts::new(), Firsts::new());
    for port in file.ports.iter().flat_map(|ports| &ports.value).filter(|port| port.is_sound) {
        let table = &port.value;
        let firsts = match (&table.device, &table.socket) {
            (Some(_), None) if table.buffer.is_some() => &mut detours,
            (Some(_), None) => &mut devices,
            _ => continue,
        };
        firsts.entry(table.affiliation()).or_insert(table);
    }
    let of_rules = file.rules.iter().flat_map(|rules| &rules.value);
    let of_rules = of_rules.map(|rule| of_sound(rule, |table| &table.treatment));
    let of_default = file.default.iter().map(|rule| of_sound(rule, |table| &table.treatment));
    for (place, (rule, keys)) in policy.rules.iter().zip(of_rules.chain(of_default)).enumerate() {
        let Some(keys) = keys else { continue };
        let wanted =
            if place == policy.last() { "use it in a rule with" } else { "ask in this rule for" };
        for (asked, firsts, needed, are, have) in [
            (
                keys_of_buffers(rule),
                &devices,
                "a buffer",
                "in the kernel",
                "with a `socket` or a `buffer`",
            ),
            (
                key_of_rings(rule),
                &detours,
                "the guest's receive ring",
                "of `vcc domain --device`, which does not see it",
                "with a `socket`",
            ),
        ] {
            let port = asked.first().and_then(|_| first_admitted(rule, firsts));
            let span = asked.first().and_then(|key| keys.span(key));
            let (Some(port), Some(span)) = (port, span) else { continue };
            let (pattern, place) = ports::pattern_of(port);
            let line = findings.line(place);
            findings.error_with(span, || {
                let names: Vec<String> =
                    asked.iter().map(|key| Surface::File.key(key.name)).collect();
                let verb = if names.len() == 1 { "needs" } else { "need" };
                format!(
                    "{} {verb} {needed}, and the ports `{}` of line {line} are {are}: {wanted} a \
                     `tenant` that only ports {have} have",
                    listing(&names, ", "),
                    shortened(pattern)
                )
            });
        }
    }
}

/// What could not be read may have been a condition.
pub(super) fn of_sound<T>(
    table: &Located<T>,
    keys: impl Fn(&T) -> &TreatmentKeys,
) -> Option<&TreatmentKeys> {
    table.is_sound.then(|| keys(&table.value))
}

/// The keys with an effect that asks for a buffer.
fn keys_of_buffers(rule: &Rule) -> Vec<&'static Key> {
    let asks =
        |key: &&Key| key.scope() == Scope::Buffers && key.get(&rule.treatment) != key.default();
    KEYS.iter().filter(asks).collect()
}

fn key_of_rings(rule: &Rule) -> Vec<&'static Key> {
    keys_of_buffers(rule).into_iter().filter(|key| key.name == "receive").collect()
}

/// The port of the first line whose connections may meet the rule's conditions.
fn first_admitted<'a>(rule: &Rule, firsts: &Firsts<'a>) -> Option<&'a PortTable> {
    let ports = firsts.iter().filter(|(port, _)| rule.conditions.admits_port_of(**port));
    ports.map(|(_, table)| *table).min_by_key(|port| ports::pattern_of(port).1.start)
}
