//! One policy, checked for itself: by the checker of policy files, with its sentences, about the fields
//! of the object.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use vcc_policy::{LONGEST_NAME_BYTES, Policy, Severity};

use crate::budget::Budget;
use crate::document::{Document, Field};
use crate::resource::PolicyObject;
use crate::selector::PodSelector;
use crate::spec::{PORT_SELECTORS, Port, Rule, Spec};

/// A policy as it was read, fit to be in force or not.
#[derive(Clone, Debug)]
pub struct Reading {
    pub object: PolicyObject,
    pub spec: Spec,
    /// Each begins with the field that it is about.
    pub errors: Vec<String>,
    pub warnings: Vec<String>,
}

/// A message has no more than this of a policy's problems: a status is read by people.
const MOST_MESSAGES: usize = 10;

impl Reading {
    /// `tenants` are those of all policies: a rule may ask for another policy's.
    pub fn from_object(object: &PolicyObject, tenants: &BTreeSet<String>) -> Self {
        if object.is_omitted {
            return Self {
                object: object.clone(),
                spec: Spec::default(),
                errors: vec![Budget::refusal()],
                warnings: Vec::new(),
            };
        }
        let root = Field::new(0, "spec");
        let mut wrong = Vec::new();
        let spec = Spec::read(&object.spec, &root, &mut wrong);
        let mut errors: Vec<String> =
            wrong.into_iter().map(|(field, why)| format!("{}: {why}", field.path)).collect();
        errors.extend(twofold_ports(&spec));
        errors.extend(too_many_watches(&spec));
        errors.extend(long_names(&object.name, &spec));
        let document = of_one(&spec, &root, tenants);
        let problems = match Policy::parse(document.text(), &object.name) {
            Ok(checked) => checked.warnings,
            Err(problems) => problems.problems,
        };
        let mut warnings = Vec::new();
        for problem in &problems {
            // Parts outside of the object, such as tenants of other policies, are not checked here.
            let Some(field) = document.field_of(problem) else {
                if problem.severity == Severity::Error {
                    errors.push(format!("spec: {}", document.message(problem)));
                }
                continue;
            };
            let message = format!("{}: {}", field.path, document.message(problem));
            match problem.severity {
                Severity::Error => errors.push(message),
                Severity::Warning => warnings.push(format!("warning: {message}")),
            }
        }
        shorten(&mut errors);
        shorten(&mut warnings);
        Self { object: object.clone(), spec, errors, warnings }
    }

    pub fn is_fit(&self) -> bool {
        self.errors.is_empty()
    }
}

fn shorten(messages: &mut Vec<String>) {
    let count = messages.len();
    if count > MOST_MESSAGES {
        messages.truncate(MOST_MESSAGES);
        messages.push(format!("{} more", count - MOST_MESSAGES));
    }
}

/// The tenants that a policy's ports have.
pub fn tenants(spec: &Value) -> impl Iterator<Item = String> {
    let ports = spec.get("ports").and_then(Value::as_array).into_iter().flatten();
    ports.filter_map(|port| port.get("tenant")?.as_str().map(str::to_owned))
}

/// The tenants that a policy's rules are about.
pub fn asked_tenants(spec: &Value) -> impl Iterator<Item = &str> {
    let rules = spec.get("rules").and_then(Value::as_array).into_iter().flatten();
    let asked = rules.filter_map(|rule| rule.get("tenant")?.as_array()).flatten();
    asked.filter_map(Value::as_str)
}

/// The name of a rule or a pool in metrics, and in the policy of a node.
pub fn full_name(policy: &str, name: &str) -> String {
    format!("{policy}/{name}")
}

fn long_names(policy: &str, spec: &Spec) -> Vec<String> {
    let rules = spec.rules.iter().map(|rule| &rule.table).enumerate();
    let rules = rules.map(|(index, table)| (format!("spec.rules[{index}].name"), table));
    let pools = spec.pools.iter().enumerate();
    let pools = pools.map(|(index, table)| (format!("spec.pools[{index}].name"), table));
    let name = |(path, table): (String, &Value)| {
        let full = full_name(policy, table.get("name")?.as_str()?);
        (full.len() > LONGEST_NAME_BYTES).then(|| {
            format!(
                "{path}: with the policy's name, as `{}`, it has at most {LONGEST_NAME_BYTES} bytes; \
                 this one has {}",
                vcc_policy::text::shortened(&full),
                full.len()
            )
        })
    };
    rules.chain(pools).filter_map(name).collect()
}

/// The policy alone, as a file: with placeholders for pods and peers, which no cluster has listed.
fn of_one(spec: &Spec, root: &Field, tenants: &BTreeSet<String>) -> Document {
    let mut document = Document::default();
    // Keys at the top come before the first heading.
    let is_table = |value: &Value| value.is_object() || value.is_array();
    for (key, value) in spec.unknown.iter().filter(|(_, value)| !is_table(value)) {
        document.key(key, value, Some(&root.key(key)));
    }
    for (key, value) in spec.unknown.iter().filter(|(_, value)| is_table(value)) {
        document.key(key, value, Some(&root.key(key)));
    }
    for (index, port) in spec.ports.iter().enumerate() {
        let field = root.key("ports").at(index);
        write_port(&mut document, &field, index, port);
    }
    for (index, table) in spec.pools.iter().enumerate() {
        write(&mut document, "[[pools]]", table, &root.key("pools").at(index));
    }
    for (index, rule) in spec.rules.iter().enumerate() {
        write_rule(&mut document, &root.key("rules").at(index), index, rule);
    }
    if let Some(default) = &spec.default {
        write(&mut document, "[default]", default, &root.key("default"));
    }
    for (index, tenant) in tenants.iter().enumerate() {
        document.heading("[[ports]]", None);
        document.key("device", &json!(format!("tenant-{index}")), None);
        document.key("tenant", &json!(tenant), None);
    }
    // Another policy's ports may have them.
    let classes =
        spec.rules.iter().filter_map(|rule| rule.table.get("class")?.as_array()).flatten();
    let classes: BTreeSet<&str> = classes.filter_map(Value::as_str).collect();
    for (index, class) in classes.into_iter().enumerate() {
        document.heading("[[ports]]", None);
        document.key("device", &json!(format!("class-{index}")), None);
        document.key("class", &json!(class), None);
    }
    document
}

fn write_port(document: &mut Document, field: &Field, index: usize, port: &Port) {
    let stand_in = match &port.pods {
        Some(_) if named(port).is_none() => vec![("device", json!(format!("pod-{index}")))],
        _ => Vec::new(),
    };
    write_with(document, "[[ports]]", &port.table, field, &stand_in);
}

/// The key by which a port is named, if it is not one of pods.
fn named(port: &Port) -> Option<&'static str> {
    ["device", "socket"].into_iter().find(|key| port.table.get(key).is_some_and(|it| !it.is_null()))
}

fn twofold_ports(spec: &Spec) -> impl Iterator<Item = String> {
    let twofold = |(index, port): (usize, &Port)| {
        let key = named(port).filter(|_| port.pods.is_some())?;
        Some(format!("spec.ports[{index}]: {}", twofold_port(key)))
    };
    spec.ports.iter().enumerate().filter_map(twofold)
}

/// Each node watches the pods of each selector.
fn too_many_watches(spec: &Spec) -> Option<String> {
    const MOST: usize = 16;
    let peers = spec.rules.iter().filter_map(|rule| rule.peers.as_ref());
    let count = peers.map(PodSelector::of_pods).collect::<BTreeSet<String>>().len();
    (count > MOST).then(|| {
        format!(
            "spec.rules: {count} different selectors of peers, each of which all nodes watch; at most \
             {MOST} are possible: let rules share them, or say networks (`peer`)"
        )
    })
}

/// The error of a port that is named by both `key` and its pods.
pub(crate) fn twofold_port(key: &str) -> String {
    let pods = PORT_SELECTORS.map(|key| format!("`{key}`")).join(" and ");
    format!("a port has a `{key}`, or {pods}, not both")
}

fn write_rule(document: &mut Document, field: &Field, index: usize, rule: &Rule) {
    let has_peer = rule.table.get("peer").is_some_and(|peer| !peer.is_null());
    let stand_in = match &rule.peers {
        // Documentation's network (RFC 3849): each rule has peers of its own.
        Some(_) if !has_peer => vec![("peer", json!([format!("2001:db8::{:x}", index + 1)]))],
        _ => Vec::new(),
    };
    write_with(document, "[[rules]]", &rule.table, field, &stand_in);
}

fn write(document: &mut Document, heading: &str, table: &Value, field: &Field) {
    write_with(document, heading, table, field, &[]);
}

/// Writes a table and more keys. Any other value becomes a table that the checker refuses.
pub(crate) fn write_with(
    document: &mut Document,
    heading: &str,
    table: &Value,
    field: &Field,
    more: &[(&str, Value)],
) {
    let nothing = Map::new();
    document.heading(heading, Some(field));
    for (key, value) in table.as_object().unwrap_or(&nothing) {
        document.key(key, value, Some(&field.key(key)));
    }
    for (key, value) in more {
        document.key(key, value, Some(&field.key(key)));
    }
}
