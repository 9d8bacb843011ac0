//! Which pods' choices a node follows, and the rules that this takes: what pods chose is the class of their
//! ports, and each rule that may match there has a copy for that class before it.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Map, Value, json};
use vcc_policy::text::char_boundary;
use vcc_policy::{DEFAULT_RULE_NAME, KEYS, LONGEST_NAME_BYTES, MAX_RULES, Policy, Severity};

use crate::check::{full_name, write_with};
use crate::choice::{Choice, RefusedChoice};
use crate::document::{Document, Field};
use crate::on_node::{BaseRule, Part, PortOnNode, as_present, list, named, tenant_of_port};
use crate::resource::Pod;

/// Different choices on a node: each takes a copy of each rule, which may have thousands of networks.
const MOST_CHOICES: usize = 16;

#[derive(Default)]
pub struct Chosen {
    /// Of the pods whose choices are followed, by UID.
    classes: BTreeMap<String, String>,
    /// The tenants whose ports have the class.
    tenants: BTreeMap<Choice, BTreeSet<Option<String>>>,
    pub followed: u64,
    pub refused: Vec<RefusedChoice>,
}

impl Chosen {
    pub fn new(ports: &[PortOnNode<'_>], rules: &[BaseRule], parts: &[Part<'_>]) -> Self {
        let mut chosen = Self::default();
        let mut wishes: BTreeMap<(&Choice, Option<&str>), Vec<&Pod>> = BTreeMap::new();
        for PortOnNode { port, pod, may_choose, .. } in ports {
            let Some((pod, _)) = pod.filter(|(pod, _)| !pod.choice.is_none()) else { continue };
            let admitted = port.may_choose.as_ref().filter(|_| *may_choose);
            match pod.choice.refusal(admitted) {
                Some(why) => chosen.refuse(pod, &why),
                None => wishes.entry((&pod.choice, tenant_of_port(port))).or_default().push(pod),
            }
        }
        let mut room =
            (MAX_RULES - 1).saturating_sub(rules.iter().filter(|it| !it.is_default).count());
        let mut copied: HashSet<(usize, &Choice)> = HashSet::new();
        for ((choice, tenant), pods) in wishes {
            match chosen.cost(choice, tenant, rules, parts, &copied, room) {
                Ok(copies) => {
                    room -= copies.len();
                    copied.extend(copies.into_iter().map(|rule| (rule, choice)));
                    chosen.follow(choice, tenant, &pods);
                }
                Err(why) => pods.into_iter().for_each(|pod| chosen.refuse(pod, &why)),
            }
        }
        chosen.refused.sort_by(|a, b| (&a.namespace, &a.pod).cmp(&(&b.namespace, &b.pod)));
        chosen
    }

    fn refuse(&mut self, pod: &Pod, why: &str) {
        let Pod { namespace, name, uid, .. } = pod;
        let (namespace, pod, uid) = (namespace.clone(), name.clone(), uid.clone());
        self.refused.push(RefusedChoice { namespace, pod, uid, why: why.to_owned() });
    }

    fn follow(&mut self, choice: &Choice, tenant: Option<&str>, pods: &[&Pod]) {
        self.tenants.entry(choice.clone()).or_default().insert(tenant.map(str::to_owned));
        self.classes.extend(pods.iter().map(|pod| (pod.uid.clone(), choice.class())));
        self.followed += pods.len() as u64;
    }

    /// The rules that must be copied for it; else why it is not possible.
    fn cost(
        &self,
        choice: &Choice,
        tenant: Option<&str>,
        rules: &[BaseRule],
        parts: &[Part<'_>],
        copied: &HashSet<(usize, &Choice)>,
        room: usize,
    ) -> Result<Vec<usize>, String> {
        if !self.tenants.contains_key(choice) && self.tenants.len() >= MOST_CHOICES {
            return Err(format!(
                "pods of this node have chosen {MOST_CHOICES} other combinations already"
            ));
        }
        let mut copies = Vec::new();
        for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.may_match(tenant)) {
            let Some(table) = choice.apply(&rule.table) else { continue };
            if let Some(why) = misfit(as_present(table, rule.presence), &rule.policy, parts) {
                let name = full_name(&rule.policy, rule.name());
                return Err(format!("`{}` does not fit the rule `{name}`: {why}", choice.words()));
            }
            if !copied.contains(&(index, choice)) {
                copies.push(index);
            }
        }
        if copies.len() > room {
            return Err("this node has no room for the rules that it takes".to_owned());
        }
        Ok(copies)
    }

    pub fn class_of(&self, pod: &Pod) -> Option<&str> {
        self.classes.get(&pod.uid).map(String::as_str)
    }

    /// The rules of the node's policy, with their headings; the default is the last.
    pub fn with_copies(
        &self,
        rules: Vec<BaseRule>,
    ) -> Vec<(&'static str, Field, Map<String, Value>)> {
        const RULE: &str = "[[rules]]";
        let full = |rule: &BaseRule| full_name(&rule.policy, rule.name());
        let mut names: HashSet<String> = rules.iter().map(full).collect();
        let (mut all, mut default) = (Vec::new(), None);
        for rule in rules {
            for (choice, tenants) in &self.tenants {
                if let Some(copy) = copy(&rule, choice, tenants, &mut names) {
                    all.push((RULE, rule.field.clone(), copy));
                }
            }
            let BaseRule { field, table, presence, policy, is_default } = rule;
            let table = named(as_present(table, presence), &policy);
            match is_default {
                true => default = Some(("[default]", field, table)),
                false => all.push((RULE, field, table)),
            }
        }
        all.extend(default);
        all
    }
}

impl BaseRule {
    fn name(&self) -> &str {
        self.table.get("name").and_then(Value::as_str).unwrap_or(DEFAULT_RULE_NAME)
    }

    /// A connection at a port whose class is what its pod has chosen.
    fn may_match(&self, tenant: Option<&str>) -> bool {
        let has = |key: &str| self.table.get(key).filter(|value| !value.is_null());
        has("class").is_none()
            && has("tenant").is_none_or(|wanted| {
                list(wanted)
                    .into_iter()
                    .any(|wanted| wanted.as_str().is_some_and(|it| tenant == Some(it)))
            })
    }
}

/// The rule as it applies to the class of a choice, at ports of these tenants.
fn copy(
    rule: &BaseRule,
    choice: &Choice,
    tenants: &BTreeSet<Option<String>>,
    names: &mut HashSet<String>,
) -> Option<Map<String, Value>> {
    let matching: Vec<&Option<String>> =
        tenants.iter().filter(|tenant| rule.may_match(tenant.as_deref())).collect();
    let table = choice.apply(&rule.table).filter(|_| !matching.is_empty())?;
    let mut table = named(as_present(table, rule.presence), &rule.policy);
    if rule.table.get("tenant").is_some_and(|tenant| !tenant.is_null()) {
        table.insert("tenant".to_owned(), json!(matching));
    }
    table.insert("class".to_owned(), json!([choice.class()]));
    let name = name_of_copy(&full_name(&rule.policy, rule.name()), &choice.words(), names);
    table.insert("name".to_owned(), json!(name));
    Some(table)
}

/// The rule's name and what was chosen; of a long name only the beginning, and a number that depends on all
/// of it.
fn name_of_copy(rule: &str, choice: &str, names: &mut HashSet<String>) -> String {
    let suffix = format!(" ({choice})");
    for salt in 0_u32.. {
        let plain = format!("{rule}{suffix}");
        let name = if salt == 0 && plain.len() <= LONGEST_NAME_BYTES {
            plain
        } else {
            let number = crc32fast::hash(format!("{rule} {salt}").as_bytes());
            let suffix = format!("~{number:08x}{suffix}");
            let end = char_boundary(rule, LONGEST_NAME_BYTES.saturating_sub(suffix.len()));
            format!("{}{suffix}", &rule[..end])
        };
        if names.insert(name.clone()) {
            return name;
        }
    }
    unreachable!("more names than numbers")
}

/// Why the checker refuses a treatment, if it does.
fn misfit(table: Map<String, Value>, policy: &str, parts: &[Part<'_>]) -> Option<String> {
    let field = Field::new(0, "spec");
    let mut document = Document::default();
    let pools = parts.iter().find(|(reading, _)| reading.object.name == policy);
    for pool in pools.into_iter().flat_map(|(reading, _)| &reading.spec.pools) {
        write_with(&mut document, "[[pools]]", pool, &field, &[]);
    }
    let is_treatment = |key: &str| KEYS.iter().any(|it| it.name == key);
    let treatment: Map<String, Value> =
        table.into_iter().filter(|(key, _)| is_treatment(key)).collect();
    write_with(&mut document, "[default]", &Value::Object(treatment), &field, &[]);
    let problems = Policy::parse(document.text(), "a choice").err()?.problems;
    let error = problems.iter().find(|problem| problem.severity == Severity::Error);
    error.map(|problem| problem.message.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_copies_fit_and_differ() {
        let mut names: HashSet<String> = ["base/a (dctcp)".to_owned()].into();
        assert_eq!(name_of_copy("base/b", "dctcp", &mut names), "base/b (dctcp)");
        let other = name_of_copy("base/a", "dctcp", &mut names);
        assert!(other.starts_with("base/a~") && other.ends_with(" (dctcp)"), "{other}");
        let long = |end: &str| format!("base/{}{end}", "\u{e9}".repeat(28));
        let both = [long("1"), long("2")]
            .map(|rule| name_of_copy(&rule, "dctcp-priority enforce", &mut names));
        assert_ne!(both[0], both[1]);
        assert!(both.iter().all(|name| name.len() <= LONGEST_NAME_BYTES), "{both:?}");
    }
}
