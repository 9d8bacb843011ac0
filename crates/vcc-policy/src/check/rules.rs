//! Rules: their names, conditions and treatments.

use std::collections::HashMap;

use vcc_engine::{Mode, Params};

use super::pools::Pools;
use super::treatment;
use crate::MAX_SELECTORS;
use crate::conditions::Conditions;
use crate::file::{Located, Name, OneOrMany, PolicyFile, PortTable, RuleTable};
use crate::nearest::suggestion;
use crate::problem::Findings;
use crate::rule::{DEFAULT_RULE_NAME, Rule};
use crate::treatment::Treatment;

/// The file's rules in their order, and the default.
pub(super) fn check(
    file: &PolicyFile,
    pools: &Pools<'_>,
    findings: &mut Findings<'_>,
) -> Vec<Rule> {
    let tenants = names_of_ports(file, |port| port.tenant.as_ref());
    let classes = names_of_ports(file, |port| port.class.as_ref());
    let mut lines = HashMap::new();
    let mut rules = Vec::new();
    for rule in file.rules.iter().flat_map(|rules| &rules.value) {
        let table = &rule.value;
        match &table.name {
            Some(name) => check_name(name, &mut lines, findings),
            None if rule.is_sound => {
                findings.error(
                    &rule.span,
                    "`name` is missing: metrics and messages identify the rule by it",
                );
            }
            None => {}
        }
        if let Some(wanted) = &table.tenant {
            check_names("tenant", &wanted.value, &tenants, findings);
        }
        if let Some(wanted) = &table.class {
            check_names("class", &wanted.value, &classes, findings);
        }
        rules.push(Rule {
            name: table.name.as_ref().map_or(String::new(), |name| name.value.0.clone()),
            conditions: conditions(table),
            treatment: treatment::check(&table.treatment, rule.is_sound, pools, findings),
        });
    }
    let treatment = match &file.default {
        Some(default) => {
            treatment::check(&default.value.treatment, default.is_sound, pools, findings)
        }
        None => {
            let params = Params::with(|params| params.mode = Mode::Ignore.number());
            Treatment { params, ..Treatment::default() }
        }
    };
    let conditions = Conditions::default();
    rules.push(Rule { name: DEFAULT_RULE_NAME.to_owned(), conditions, treatment });
    rules
}

/// Sorted.
fn names_of_ports(
    file: &PolicyFile,
    name: impl Fn(&PortTable) -> Option<&Located<Name>>,
) -> Vec<&str> {
    let ports = file.ports.iter().flat_map(|ports| &ports.value).take(MAX_SELECTORS);
    let mut names: Vec<&str> =
        ports.filter_map(|port| name(&port.value)).map(|name| name.value.0.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn check_name<'a>(
    name: &'a Located<Name>,
    lines: &mut HashMap<&'a str, usize>,
    findings: &mut Findings<'_>,
) {
    let text = name.value.0.as_str();
    if text == DEFAULT_RULE_NAME {
        findings.error(
            &name.span,
            format!("the name `{text}` is that of [{text}], for connections that no rule matches"),
        );
    } else if let Some(line) = lines.get(text) {
        findings.error(&name.span, format!("the rule in line {line} also has the name `{text}`"));
    } else {
        lines.insert(text, findings.line(&name.span));
    }
}

fn check_names(what: &str, wanted: &OneOrMany<Name>, known: &[&str], findings: &mut Findings<'_>) {
    for wanted in &wanted.0 {
        let name = wanted.value.0.as_str();
        if known.binary_search(&name).is_err() {
            findings.warning_with(&wanted.span, || {
                let meant = suggestion(name, known.iter().copied());
                format!("no port has the {what} `{name}`; {meant}")
            });
        }
    }
}

fn conditions(table: &RuleTable) -> Conditions {
    fn all<T, V>(
        values: &Option<Located<OneOrMany<T>>>,
        value: impl Fn(&T) -> V,
    ) -> Option<Vec<V>> {
        let values = values.as_ref()?;
        Some(values.value.0.iter().map(|located| value(&located.value)).collect())
    }
    Conditions {
        tenants: all(&table.tenant, |tenant| tenant.0.clone()),
        classes: all(&table.class, |class| class.0.clone()),
        peers: all(&table.peer, |network| network.0),
        guest_ports: all(&table.guest_port, |range| *range),
        peer_ports: all(&table.peer_port, |range| *range),
        role: table.role.as_ref().map(|role| role.value),
        vlans: all(&table.vlan, |vlan| vlan.0),
    }
}
