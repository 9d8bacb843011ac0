//! Which ports share a pool: those in the kernel, and none of `vcc domain`, whose processes each have their
//! own.

use std::collections::{BTreeMap, HashMap};

use super::abilities::of_sound;
use super::ports;
use crate::affiliation::Affiliation;
use crate::file::{PolicyFile, PortTable};
use crate::keys::Key;
use crate::policy::Policy;
use crate::problem::Findings;
use crate::rule::Rule;
use crate::text::shortened;

/// Ports that may share a pool, by their places in the file: the first ones in the kernel, and the first two of
/// `vcc domain`.
#[derive(Clone, Default)]
struct Places<'a> {
    kernel: BTreeMap<usize, &'a PortTable>,
    domains: BTreeMap<usize, &'a PortTable>,
}

impl<'a> Places<'a> {
    fn of_kernel(table: &'a PortTable) -> Self {
        let kernel = [(ports::pattern_of(table).1.start, table)].into();
        Self { kernel, domains: BTreeMap::new() }
    }

    fn of_domain(table: &'a PortTable) -> Self {
        let domains = [(ports::pattern_of(table).1.start, table)].into();
        Self { kernel: BTreeMap::new(), domains }
    }

    fn add(&mut self, other: &Self) {
        for (own, others, most) in
            [(&mut self.kernel, &other.kernel, 1), (&mut self.domains, &other.domains, 2)]
        {
            own.extend(others);
            while own.len() > most {
                own.pop_last();
            }
        }
    }

    /// Two that do not share a pool, in the order of the file; one, if several ports match it.
    fn apart(&self) -> Option<(&'a PortTable, Option<&'a PortTable>)> {
        let mut domains = self.domains.iter();
        let (at, first) = domains.next()?;
        match self.kernel.first_key_value().or(domains.next()) {
            Some((other_at, other)) if other_at < at => Some((other, Some(*first))),
            Some((_, other)) => Some((first, Some(*other))),
            None => matches_several(ports::pattern_of(first).0).then_some((*first, None)),
        }
    }
}

/// Has the pattern a wildcard? In brackets, a character stands for itself.
fn matches_several(pattern: &str) -> bool {
    let unescaped = ["[*]", "[?]", "[[]", "[]]"]
        .iter()
        .fold(pattern.to_owned(), |pattern, it| pattern.replace(it, ""));
    unescaped.contains(['*', '?', '['])
}

/// Warns once of each pool, at the rule with which it is no longer one.
pub(super) fn check(file: &PolicyFile, policy: &Policy, findings: &mut Findings<'_>) {
    let mut by_port: HashMap<Affiliation<'_>, Places<'_>> = HashMap::new();
    for port in file.ports.iter().flat_map(|ports| &ports.value).filter(|port| port.is_sound) {
        let table = &port.value;
        let places = match (&table.device, &table.socket) {
            (Some(_), None) if table.buffer.is_none() => Places::of_kernel(table),
            (Some(_), None) | (None, Some(_)) => Places::of_domain(table),
            _ => continue,
        };
        by_port.entry(table.affiliation()).or_default().add(&places);
    }
    let mut all = Places::default();
    by_port.values().for_each(|places| all.add(places));
    let mut by_pool: HashMap<usize, Places<'_>> = HashMap::new();
    let of_rules = file.rules.iter().flat_map(|rules| &rules.value);
    let of_rules = of_rules.map(|rule| of_sound(rule, |table| &table.treatment));
    let of_default = file.default.iter().map(|rule| of_sound(rule, |table| &table.treatment));
    for (rule, keys) in policy.rules.iter().zip(of_rules.chain(of_default)) {
        let Some(pool) = rule.treatment.pool else { continue };
        let places = by_pool.entry(pool).or_default();
        let was_apart = places.apart().is_some();
        places.add(&admitted(rule, &by_port, &all));
        let span = keys.and_then(|keys| keys.span(Key::named("pool")?));
        let (false, Some((first, second)), Some(span)) = (was_apart, places.apart(), span) else {
            continue;
        };
        let name = &policy.pools[pool].name;
        let of = |table, findings: &Findings<'_>| {
            let (pattern, place) = ports::pattern_of(table);
            format!("`{}` of line {}", shortened(pattern), findings.line(place))
        };
        let (first, second) = (of(first, findings), second.map(|it| of(it, findings)));
        findings.warning_with(span, || {
            let ports = match second {
                Some(second) => format!("between the ports {first} and {second}"),
                None => format!("among the ports {first}"),
            };
            format!(
                "the pool `{}` is not shared {ports}: each process of `vcc domain` has one of its own, \
                 with the same window",
                shortened(name)
            )
        });
    }
}

/// The ports whose connections may meet the rule's conditions.
fn admitted<'a>(
    rule: &Rule,
    by_port: &HashMap<Affiliation<'a>, Places<'a>>,
    all: &Places<'a>,
) -> Places<'a> {
    if rule.conditions.tenants.is_none() && rule.conditions.classes.is_none() {
        return all.clone();
    }
    let mut places = Places::default();
    for (port, of_port) in by_port {
        if rule.conditions.admits_port_of(*port) {
            places.add(of_port);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_without_wildcards_matches_one_port() {
        for one in ["/run/a", "/run/[*]", "tap[[]0[]]"] {
            assert!(!matches_several(one), "{one}");
        }
        for several in ["/run/*", "tap?", "tap[01]", "[*]*"] {
            assert!(matches_several(several), "{several}");
        }
    }
}
