//! From the policies in force to the policy of one node: a policy file, of what the node needs.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value, json};
use vcc_policy::pattern_of;

use crate::check::write_with;
use crate::choice::RefusedChoice;
use crate::chosen::Chosen;
use crate::cluster_state::{ClusterState, has_device};
use crate::document::{Document, Field};
use crate::on_node::{BaseRule, MODE, Part, PortOnNode, is_enforced, list, named, tenant_of_port};
use crate::spec::{Presence, Rule};

/// What a node needs of the policies.
#[derive(Default)]
pub struct Rendered {
    pub document: Document,
    /// Pods whose choices are followed.
    pub followed: u64,
    pub refused: Vec<RefusedChoice>,
}

/// The index among the parts distinguishes the fields of each policy.
pub fn render(parts: &[Part<'_>], cluster: &ClusterState) -> Rendered {
    let mut document = Document::default();
    describe(&mut document, parts);
    let in_force = InForce::from_parts(parts);
    let (ports, tenants) = ports_on_node(present(parts), &in_force, cluster);
    let rules = rules_on_node(parts, &in_force, &tenants, cluster);
    let chosen = Chosen::new(&ports, &rules, parts);
    write_ports(&mut document, &ports, &chosen);
    let rules = chosen.with_copies(rules);
    let pools_in_use: HashSet<&str> =
        rules.iter().filter_map(|(_, _, table)| table.get("pool")?.as_str()).collect();
    for (policy, (reading, _)) in present(parts) {
        for (index, pool) in reading.spec.pools.iter().enumerate() {
            let pool = named(object(pool), &reading.object.name);
            let name = pool.get("name").and_then(Value::as_str);
            if name.is_some_and(|name| pools_in_use.contains(name)) {
                let field = Field::new(policy, format!("spec.pools[{index}]"));
                write_with(&mut document, "[[pools]]", &Value::Object(pool), &field, &[]);
            }
        }
    }
    for (heading, field, table) in rules {
        write_with(&mut document, heading, &Value::Object(table), &field, &[]);
    }
    Rendered { document, followed: chosen.followed, refused: chosen.refused }
}

/// In the order of the node's policy: a default comes last, wherever it is here.
fn rules_on_node(
    parts: &[Part<'_>],
    in_force: &InForce<'_>,
    tenants: &BTreeSet<String>,
    cluster: &ClusterState,
) -> Vec<BaseRule> {
    let mut rules = Vec::new();
    // What is in force as written comes before what a rollout has in shadow mode, even the copies of a default.
    for wanted in [Presence::AsWritten, Presence::Shadow] {
        for (policy, (reading, presence)) in present(parts).filter(|(_, (_, it))| *it == wanted) {
            if *presence == Presence::Shadow && in_force.changes_all {
                continue;
            }
            let spec = Field::new(policy, "spec");
            for (index, rule) in reading.spec.rules.iter().enumerate() {
                let Some(table) = rule_on_node(rule, tenants, cluster) else { continue };
                rules.push(BaseRule {
                    field: spec.key("rules").at(index),
                    table,
                    presence: *presence,
                    policy: reading.object.name.clone(),
                    is_default: false,
                });
            }
        }
        for (policy, (reading, presence)) in present(parts).filter(|(_, (_, it))| *it == wanted) {
            if let Some(default) = &reading.spec.default {
                rules.push(BaseRule {
                    field: Field::new(policy, "spec.default"),
                    table: object(default),
                    presence: *presence,
                    policy: reading.object.name.clone(),
                    is_default: true,
                });
            }
        }
    }
    rules
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

/// Also returns the tenants that they have.
fn ports_on_node<'a>(
    parts: impl Iterator<Item = (usize, &'a Part<'a>)>,
    in_force: &InForce<'_>,
    cluster: &'a ClusterState,
) -> (Vec<PortOnNode<'a>>, BTreeSet<String>) {
    let own = cluster.own_with_devices();
    let mut taken = HashSet::new();
    let mut ports = Vec::new();
    for (policy, (reading, presence)) in parts {
        for (index, port) in reading.spec.ports.iter().enumerate() {
            if *presence == Presence::Shadow && in_force.changes(tenant_of_port(port)) {
                continue;
            }
            let may_choose = *presence == Presence::AsWritten;
            let field = Field::new(policy, format!("spec.ports[{index}]"));
            let on_node = |pod| PortOnNode { field: field.clone(), port, pod, may_choose };
            match &port.pods {
                None => ports.push(on_node(None)),
                Some(selector) => {
                    for (pod, device) in &own {
                        if cluster.selects(selector, pod) && taken.insert(*device) {
                            ports.push(on_node(Some((*pod, *device))));
                        }
                    }
                }
            }
        }
    }
    let tenants =
        ports.iter().filter_map(|it| tenant_of_port(it.port).map(str::to_owned)).collect();
    (ports, tenants)
}

fn write_ports(document: &mut Document, ports: &[PortOnNode<'_>], chosen: &Chosen) {
    for PortOnNode { field, port, pod, .. } in ports {
        let mut more = Vec::new();
        if let Some((pod, device)) = pod {
            document.comment(&format!("{}/{}", pod.namespace, pod.name));
            more.push(("device", json!(pattern_of(device))));
            more.extend(chosen.class_of(pod).map(|class| ("class", json!(class))));
        }
        write_with(document, "[[ports]]", &port.table, field, &more);
    }
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

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}
