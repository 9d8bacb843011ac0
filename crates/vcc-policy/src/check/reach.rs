//! Rules that no connection ever reaches.
//!
//! A rule's conditions make a box: in each dimension a set of values. The rule is never reached if
//! the box of an earlier rule contains its own, or if several earlier boxes do together. The check
//! finds several boxes only if each covers it in all dimensions but one, and they cover that one
//! together. A reported rule is never reached; one that is not reported may be unreachable too.

use std::collections::HashMap;

use crate::admitted::{addresses, port_numbers, vlan_numbers};
use crate::conditions::Conditions;
use crate::connection::Role;
use crate::file::PolicyFile;
use crate::listing::listing;
use crate::policy::Policy;
use crate::problem::{Findings, Span};
use crate::ranges::Ranges;

const DIMENSIONS: usize = 7;

type Region = [Ranges; DIMENSIONS];

struct Candidate<'a> {
    name: &'a str,
    line: usize,
    span: &'a Span,
    region: Region,
}

pub(super) fn check(file: &PolicyFile, policy: &Policy, findings: &mut Findings<'_>) {
    let mut names = HashMap::new();
    let mut candidates: Vec<Candidate<'_>> = Vec::new();
    let tables = file.rules.iter().flat_map(|rules| &rules.value);
    for (rule, table) in policy.rules.iter().zip(tables) {
        // A value that could not be read may have been a condition.
        if let Some(name) = table.value.name.as_ref().filter(|_| table.is_sound) {
            candidates.push(Candidate {
                name: rule.name(),
                line: findings.line(&name.span),
                span: &name.span,
                region: region(&rule.conditions, &mut names),
            });
        }
    }
    if let Some(default) = &file.default {
        candidates.push(Candidate {
            name: "default",
            line: findings.line(&default.span),
            span: &default.span,
            region: region(&Conditions::default(), &mut names),
        });
    }
    for place in 1..candidates.len() {
        let (earlier, rule) = (&candidates[..place], &candidates[place]);
        let Some(coverers) = coverers(&rule.region, earlier) else { continue };
        let names: Vec<String> = coverers
            .iter()
            .map(|coverer| format!("`{}` (line {})", coverer.name, coverer.line))
            .collect();
        let (noun, verb) = match coverers.len() {
            1 => ("rule", "matches"),
            _ => ("rules", "together match"),
        };
        let names = listing(&names, ", ");
        let message = format!(
            "`{}` is never reached: {noun} {names} {verb} all of its connections first",
            rule.name
        );
        findings.warning(rule.span, message);
    }
}

fn region<'a>(conditions: &'a Conditions, known: &mut HashMap<&'a str, u128>) -> Region {
    let numbers = |values: Vec<u128>| Ranges::new(values.into_iter().map(|value| (value, value)));
    let mut names = |names: &'a Option<Vec<String>>| {
        names.as_ref().map_or_else(Ranges::all, |names| {
            let mut number = |name: &'a str| {
                let next = known.len() as u128;
                *known.entry(name).or_insert(next)
            };
            numbers(names.iter().map(|name| number(name)).collect())
        })
    };
    [
        names(&conditions.tenants),
        names(&conditions.classes),
        addresses(&conditions.peers),
        port_numbers(&conditions.guest_ports),
        port_numbers(&conditions.peer_ports),
        // These two are all roles.
        conditions.role.map_or_else(
            || numbers(vec![0, 1]),
            |role| numbers(vec![u128::from(role == Role::Server)]),
        ),
        vlan_numbers(&conditions.vlans),
    ]
}

/// The earlier rules that leave nothing of a region; one, if one is enough.
fn coverers<'a>(region: &Region, earlier: &'a [Candidate<'a>]) -> Option<Vec<&'a Candidate<'a>>> {
    // By the one dimension in which an earlier rule does not cover the region.
    let mut all_but: [Vec<&Candidate<'_>>; DIMENSIONS] = Default::default();
    for candidate in earlier {
        let mut missing = (0..DIMENSIONS).filter(|&d| !candidate.region[d].covers(&region[d]));
        match (missing.next(), missing.next()) {
            (None, _) => return Some(vec![candidate]),
            (Some(dimension), None) => all_but[dimension].push(candidate),
            _ => {}
        }
    }
    (0..DIMENSIONS).find_map(|d| {
        let parts = std::mem::take(&mut all_but[d]);
        let union = Ranges::union(parts.iter().map(|part| &part.region[d]));
        // Rules that do not overlap with it in this dimension are not named.
        let has_part = |part: &&Candidate<'_>| part.region[d].meets(&region[d]);
        union.covers(&region[d]).then(|| parts.into_iter().filter(has_part).collect())
    })
}
