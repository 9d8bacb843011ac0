//! The spec of a VccPolicy: the tables of a policy file, with selectors of pods beside names of devices
//! and addresses of peers, the policy's place among the others, and how it is rolled out.

use serde_json::{Map, Value};

use crate::canary::Share;
use crate::choice::{Admitted, PODS_MAY_CHOOSE};
use crate::document::{Field, Wrong};
use crate::selector::{self, PodSelector};

/// Of the keys, those of a policy file are as they were written: their checker reads them.
#[derive(Clone, Debug, Default)]
pub struct Spec {
    /// A policy of a lower number comes first.
    pub priority: i64,
    pub rollout: Rollout,
    pub ports: Vec<Port>,
    pub pools: Vec<Value>,
    pub rules: Vec<Rule>,
    pub default: Option<Value>,
    /// What no table of a policy file has.
    pub unknown: Map<String, Value>,
}

#[derive(Clone, Debug, Default)]
pub struct Rollout {
    /// The nodes on which the policy is enforced; None: all.
    pub canary: Option<Share>,
    /// Whether the others, or all without a canary, have it in shadow mode.
    pub shadow: bool,
}

#[derive(Clone, Debug)]
pub struct Port {
    pub table: Value,
    /// The pods whose devices these ports are; else the table says.
    pub pods: Option<PodSelector>,
    /// What these pods may choose; None: nothing.
    pub may_choose: Option<Admitted>,
}

#[derive(Clone, Debug)]
pub struct Rule {
    pub table: Value,
    /// Pods that are peers, besides those of `peer`.
    pub peers: Option<PodSelector>,
}

/// How a node has a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Presence {
    /// It is as if there were no such policy.
    Absent,
    Shadow,
    AsWritten,
}

/// The keys of a VccPolicy besides those of a policy file.
pub const PRIORITY: &str = "priority";
pub const ROLLOUT: &str = "rollout";
pub const CANARY: &str = "canary";
pub const SHADOW: &str = "shadow";
/// Selectors of a port's pods, and of the pods that are a rule's peers.
pub const PORT_SELECTORS: [&str; 2] = ["namespaces", "pods"];
pub const PEER_SELECTORS: [&str; 2] = ["peer_namespaces", "peer_pods"];
pub const PRIORITIES: std::ops::RangeInclusive<i64> = 0..=1000;
/// Of a policy that does not say.
pub const DEFAULT_PRIORITY: i64 = 500;

pub const CHOICE_WITHOUT_PODS: &str =
    "`pods_may_choose` is for ports with `namespaces` or `pods`: others have no annotations";
pub const CHOICE_WITH_CLASS: &str = "`pods_may_choose` and `class` exclude each other: what a pod has chosen is the class of its port";

impl Rollout {
    pub fn presence(&self, node: &str) -> Presence {
        match (&self.canary, self.shadow) {
            (Some(share), _) if share.has(node) => Presence::AsWritten,
            (None, false) => Presence::AsWritten,
            (_, true) => Presence::Shadow,
            (Some(_), false) => Presence::Absent,
        }
    }
}

impl Port {
    /// Why these ports cannot admit a choice.
    fn wrong_choice(&self) -> Option<&'static str> {
        self.may_choose.as_ref()?;
        let has_class = self.table.get("class").is_some_and(|class| !class.is_null());
        match &self.pods {
            None => Some(CHOICE_WITHOUT_PODS),
            Some(_) => has_class.then_some(CHOICE_WITH_CLASS),
        }
    }
}

impl Spec {
    /// Reads the keys that a policy file does not have; errors go to `wrong`.
    pub fn read(spec: &Value, root: &Field, wrong: &mut Vec<Wrong>) -> Self {
        let Value::Object(keys) = spec else {
            wrong.push((root.clone(), "must be the tables of a policy".to_owned()));
            return Self::default();
        };
        let mut read = Self { priority: DEFAULT_PRIORITY, ..Self::default() };
        for (key, value) in keys.iter().filter(|(_, value)| !value.is_null()) {
            let field = root.key(key);
            let mut list = || match value {
                Value::Array(values) => values.clone(),
                _ => {
                    wrong.push((field.clone(), "must be a list".to_owned()));
                    Vec::new()
                }
            };
            match key.as_str() {
                PRIORITY => match value.as_i64().filter(|it| PRIORITIES.contains(it)) {
                    Some(priority) => read.priority = priority,
                    None => {
                        let (first, last) = PRIORITIES.into_inner();
                        wrong.push((field, format!("must be {first} to {last}, not {value}")));
                    }
                },
                ROLLOUT => read.rollout = Rollout::read(value, &field, wrong),
                "ports" => {
                    let ports = list().into_iter().enumerate();
                    let ports = ports.map(|(index, mut table)| {
                        let field = field.at(index);
                        let may_choose = Admitted::take(&mut table, &field, wrong);
                        let (table, pods) = split(table, PORT_SELECTORS, &field, wrong);
                        let port = Port { table, pods, may_choose };
                        if let Some(why) = port.wrong_choice() {
                            wrong.push((field.key(PODS_MAY_CHOOSE), why.to_owned()));
                        }
                        port
                    });
                    read.ports = ports.collect();
                }
                "rules" => {
                    let rules = list().into_iter().enumerate();
                    let rules = rules.map(|(index, table)| {
                        let (table, peers) = split(table, PEER_SELECTORS, &field.at(index), wrong);
                        Rule { table, peers }
                    });
                    read.rules = rules.collect();
                }
                "pools" => read.pools = list(),
                "default" => read.default = Some(value.clone()),
                _ => {
                    read.unknown.insert(key.clone(), value.clone());
                }
            }
        }
        read
    }
}

impl Rollout {
    fn read(value: &Value, field: &Field, wrong: &mut Vec<Wrong>) -> Self {
        let mut read = Self::default();
        let Value::Object(keys) = value else {
            wrong.push((field.clone(), format!("must be a table of `{CANARY}` and `{SHADOW}`")));
            return read;
        };
        for (key, value) in keys.iter().filter(|(_, value)| !value.is_null()) {
            let field = field.key(key);
            match (key.as_str(), value) {
                (CANARY, Value::String(text)) => match Share::parse(text) {
                    Ok(share) => read.canary = Some(share),
                    Err(why) => wrong.push((field, why)),
                },
                (CANARY, _) => {
                    wrong.push((field, "must be a share of the nodes, like \"10%\"".to_owned()));
                }
                (SHADOW, Value::Bool(shadow)) => read.shadow = *shadow,
                (SHADOW, _) => wrong.push((field, "must be true or false".to_owned())),
                _ => {
                    let key = vcc_policy::text::shortened(key);
                    let why = format!("unknown key `{key}`; known: {CANARY}, {SHADOW}");
                    wrong.push((field, why));
                }
            }
        }
        read
    }
}

/// Takes the selectors out of a table.
fn split(
    mut table: Value,
    [namespaces, pods]: [&str; 2],
    field: &Field,
    wrong: &mut Vec<Wrong>,
) -> (Value, Option<PodSelector>) {
    let Value::Object(keys) = &mut table else { return (table, None) };
    let mut take = |key: &str| {
        let value = keys.remove(key).filter(|value| !value.is_null())?;
        match selector::read(&value) {
            Ok(selector) => Some(Some(selector)),
            Err(why) => {
                wrong.push((field.key(key), why));
                Some(None)
            }
        }
    };
    let (namespaces, pods) = (take(namespaces), take(pods));
    let is_selected = namespaces.is_some() || pods.is_some();
    let selector = PodSelector { namespaces: namespaces.flatten(), pods: pods.flatten() };
    (table, is_selected.then_some(selector))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(spec: Value) -> (Spec, Vec<String>) {
        let mut wrong = Vec::new();
        let spec = Spec::read(&spec, &Field::new(0, "spec"), &mut wrong);
        (spec, wrong.into_iter().map(|(field, why)| format!("{}: {why}", field.path)).collect())
    }

    #[test]
    fn selectors_are_taken_out_of_the_tables() {
        let (spec, wrong) = read(json!({
            "priority": 10,
            "rollout": { "canary": "10%", "shadow": true },
            "ports": [
                { "namespaces": { "matchLabels": { "a": "b" } }, "tenant": "acme" },
                { "device": "veth*", "pods": null },
            ],
            "rules": [{ "name": "r", "peer_pods": {}, "peer": ["10.0.0.0/8"] }],
            "default": { "mode": "shadow" },
            "defaults": 1,
        }));
        assert_eq!(wrong, [""; 0]);
        assert_eq!((spec.priority, spec.rollout.shadow), (10, true));
        assert_eq!(spec.ports[0].table, json!({ "tenant": "acme" }));
        assert!(spec.ports[0].pods.as_ref().is_some_and(|pods| pods.pods.is_none()));
        assert!(spec.ports[1].pods.is_none());
        assert_eq!(spec.rules[0].table, json!({ "name": "r", "peer": ["10.0.0.0/8"] }));
        assert!(spec.rules[0].peers.is_some());
        assert_eq!(spec.unknown.keys().collect::<Vec<_>>(), ["defaults"]);
    }

    #[test]
    fn a_canary_has_it_as_written_and_others_in_shadow_or_not_at_all() {
        let presence = |rollout: Value| {
            let (spec, wrong) = read(json!({ "rollout": rollout }));
            assert_eq!(wrong, [""; 0]);
            spec.rollout.presence("node")
        };
        assert_eq!(presence(json!({})), Presence::AsWritten);
        assert_eq!(presence(json!({ "shadow": true })), Presence::Shadow);
        assert_eq!(presence(json!({ "canary": "0%" })), Presence::Absent);
        assert_eq!(presence(json!({ "canary": "0%", "shadow": true })), Presence::Shadow);
        assert_eq!(presence(json!({ "canary": "100%", "shadow": true })), Presence::AsWritten);
    }

    #[test]
    fn errors_name_the_cause() {
        let (_, wrong) = read(json!({
            "priority": 1001,
            "rollout": { "canary": 10, "shadow": "yes", "canry": "1%" },
            "ports": { "pods": {} },
            "rules": [{ "peer_pods": "app=web" }],
        }));
        let selector = "must be a label selector, of `matchLabels` and `matchExpressions`";
        let expected = [
            "spec.ports: must be a list",
            "spec.priority: must be 0 to 1000, not 1001",
            "spec.rollout.canary: must be a share of the nodes, like \"10%\"",
            "spec.rollout.canry: unknown key `canry`; known: canary, shadow",
            "spec.rollout.shadow: must be true or false",
            &format!("spec.rules[0].peer_pods: {selector}"),
        ];
        assert_eq!(wrong, expected);
        assert_eq!(read(json!([])).1, ["spec: must be the tables of a policy"]);
    }
}
