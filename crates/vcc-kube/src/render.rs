//! From the policies in force to the policy of one node: a policy file, of what the node needs.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value, json};
use vcc_policy::{KEYS, pattern_of};

use crate::check::{Reading, full_name, write_with};
use crate::cluster_state::{ClusterState, has_device};
use crate::document::{Document, Field};
use crate::spec::{Presence, Rule};

const MODE: &str = "mode";

/// A policy and how the node has it, in the order of priorities.
pub type Part<'a> = (&'a Reading, Presence);

/// The index among the parts distinguishes the fields of each policy.
pub fn render(parts: &[Part<'_>], cluster: &ClusterState) -> Document {
    let mut document = Document::default();
    describe(&mut document, parts);
    let present = || present(parts);
    let in_force = InForce::from_parts(parts);
    let tenants = write_ports(&mut document, present(), &in_force, cluster);
    let mut rules = Vec::new();
    for (policy, (reading, presence)) in present() {
        if *presence == Presence::Shadow && in_force.changes_all {
            continue;
        }
        let spec = Field::new(policy, "spec");
        for (index, rule) in reading.spec.rules.iter().enumerate() {
            let Some(table) = rule_on_node(rule, &tenants, cluster) else { continue };
            let table = named(as_present(table, *presence), &reading.object.name);
            rules.push((spec.key("rules").at(index), table));
        }
    }
    let pools_in_use: HashSet<&str> =
        rules.iter().filter_map(|(_, table)| table.get("pool")?.as_str()).collect();
    for (policy, (reading, _)) in present() {
        for (index, pool) in reading.spec.pools.iter().enumerate() {
            let pool = named(object(pool), &reading.object.name);
            let name = pool.get("name").and_then(Value::as_str);
            if name.is_some_and(|name| pools_in_use.contains(name)) {
                let field = Field::new(policy, format!("spec.pools[{index}]"));
                write_with(&mut document, "[[pools]]", &Value::Object(pool), &field, &[]);
            }
        }
    }
    for (field, table) in rules {
        write_with(&mut document, "[[rules]]", &Value::Object(table), &field, &[]);
    }
    for (policy, (reading, presence)) in present() {
        if let Some(default) = &reading.spec.default {
            let table = Value::Object(as_present(object(default), *presence));
            write_with(
                &mut document,
                "[default]",
                &table,
                &Field::new(policy, "spec.default"),
                &[],
            );
        }
    }
    document
}

fn describe(document: &mut Document, parts: &[Part<'_>]) {
    document.comment("Of the cluster's policies (kubectl get vccpolicies), what this node needs.");
    for (reading, presence) in parts {
        let how = match presence {
            Presence::Absent => ", which its rollout keeps from this node",
            Presence::Shadow => ", in shadow mode by its rollout",
            Presence::AsWritten => "",
        };
        let object = &reading.object;
        document.comment(&format!("{}, generation {}{how}", object.name, object.generation));
    }
}

/// Those that the node has, with their indices. What a rollout has in shadow mode comes last: it takes no
/// pod and no connection from what is in force ([`InForce`]).
fn present<'a>(parts: &'a [Part<'a>]) -> impl Iterator<Item = (usize, &'a Part<'a>)> {
    let of = |wanted: Presence| {
        parts.iter().enumerate().filter(move |(_, (_, presence))| *presence == wanted)
    };
    of(Presence::AsWritten).chain(of(Presence::Shadow))
}

/// Whose connections the policies change that are in force as they are written. A rollout in shadow mode
/// changes nothing: it takes no connection from a default, and gives no pod to rules that would change its.
#[derive(Default)]
struct InForce<'a> {
    /// By a default.
    changes_all: bool,
    /// By a rule without tenants.
    changes_any: bool,
    tenants: HashSet<&'a str>,
}

impl<'a> InForce<'a> {
    fn from_parts(parts: &'a [Part<'a>]) -> Self {
        let mut in_force = Self::default();
        for (reading, _) in parts.iter().filter(|(_, it)| *it == Presence::AsWritten) {
            in_force.changes_all |=
                reading.spec.default.as_ref().is_some_and(|table| is_enforced(table.get(MODE)));
            for rule in reading.spec.rules.iter().filter(|rule| is_enforced(rule.table.get(MODE))) {
                let Some(tenant) = tenant_of(&rule.table) else {
                    in_force.changes_any = true;
                    continue;
                };
                in_force.tenants.extend(list(tenant).into_iter().filter_map(Value::as_str));
            }
        }
        in_force
    }

    /// The connections of a port with this tenant, or without one?
    fn changes(&self, tenant: Option<&str>) -> bool {
        self.changes_all
            || self.changes_any
            || tenant.is_some_and(|tenant| self.tenants.contains(tenant))
    }
}

/// Returns the tenants that the node's ports have.
fn write_ports<'a>(
    document: &mut Document,
    parts: impl Iterator<Item = (usize, &'a Part<'a>)>,
    in_force: &InForce<'_>,
    cluster: &ClusterState,
) -> BTreeSet<String> {
    let own = cluster.own_with_devices();
    let mut taken = HashSet::new();
    let mut tenants = BTreeSet::new();
    for (policy, (reading, presence)) in parts {
        for (index, port) in reading.spec.ports.iter().enumerate() {
            let tenant = port.table.get("tenant").and_then(Value::as_str);
            if *presence == Presence::Shadow && in_force.changes(tenant) {
                continue;
            }
            let field = Field::new(policy, format!("spec.ports[{index}]"));
            let mut is_there = port.pods.is_none();
            match &port.pods {
                None => write_with(document, "[[ports]]", &port.table, &field, &[]),
                Some(selector) => {
                    for (pod, device) in &own {
                        if cluster.selects(selector, pod) && taken.insert(*device) {
                            document.comment(&format!("{}/{}", pod.namespace, pod.name));
                            let device = [("device", json!(pattern_of(device)))];
                            write_with(document, "[[ports]]", &port.table, &field, &device);
                            is_there = true;
                        }
                    }
                }
            }
            tenants.extend(tenant.filter(|_| is_there).map(str::to_owned));
        }
    }
    tenants
}

/// A rule as far as it can match on this node; None if it cannot.
fn rule_on_node(
    rule: &Rule,
    tenants: &BTreeSet<String>,
    cluster: &ClusterState,
) -> Option<Map<String, Value>> {
    let mut table = object(&rule.table);
    if let Some(wanted) = tenant_of(&rule.table) {
        let is_here = |tenant: &&Value| tenant.as_str().is_some_and(|it| tenants.contains(it));
        let here: Vec<Value> = list(wanted).into_iter().filter(is_here).cloned().collect();
        if here.is_empty() {
            return None;
        }
        table.insert("tenant".to_owned(), Value::Array(here));
    }
    if let Some(selector) = &rule.peers {
        let written = rule.table.get("peer").map(list).unwrap_or_default();
        let written = written.into_iter().filter_map(Value::as_str).map(str::to_owned);
        let pods = cluster.peers.values().filter(|pod| has_device(pod));
        let pods = pods.filter(|pod| cluster.selects(selector, pod));
        let addresses = pods.flat_map(|pod| &pod.addresses).map(ToString::to_string);
        // In an order that does not depend on that of events.
        let peers: BTreeSet<String> = written.chain(addresses).collect();
        if peers.is_empty() {
            return None;
        }
        table.insert("peer".to_owned(), json!(peers));
    }
    Some(table)
}

/// The tenants of a rule; None: it has none, and is for all connections.
fn tenant_of(rule: &Value) -> Option<&Value> {
    rule.get("tenant").filter(|tenant| !tenant.is_null())
}

fn is_enforced(mode: Option<&Value>) -> bool {
    mode.and_then(Value::as_str).is_none_or(|mode| mode == "enforce")
}

/// A treatment as the node has it.
fn as_present(mut table: Map<String, Value>, presence: Presence) -> Map<String, Value> {
    if presence == Presence::Shadow && is_enforced(table.get(MODE)) {
        table.insert(MODE.to_owned(), json!("shadow"));
        for key in KEYS.iter().filter(|key| key.is_error_in_shadow()) {
            table.remove(key.name);
        }
    }
    table
}

/// Gives the names of a table the name of their policy, since other policies may have the same.
fn named(mut table: Map<String, Value>, policy: &str) -> Map<String, Value> {
    for key in ["name", "pool"] {
        if let Some(Value::String(name)) = table.get_mut(key) {
            *name = full_name(policy, name);
        }
    }
    table
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// A value, or a list of them.
fn list(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(values) => values.iter().collect(),
        Value::Null => Vec::new(),
        value => vec![value],
    }
}
