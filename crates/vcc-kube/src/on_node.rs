//! What policies become on one node: their rules, and the ports of its pods.

use serde_json::{Map, Value};

use crate::check::{Reading, full_name};
use crate::choice::put_in_shadow;
use crate::document::Field;
use crate::resource::Pod;
use crate::spec::{Port, Presence};

pub const MODE: &str = "mode";

/// A policy and how the node has it, in the order of priorities.
pub type Part<'a> = (&'a Reading, Presence);

/// A rule or the default as it is on the node, before anything is chosen.
pub struct BaseRule {
    pub field: Field,
    pub table: Map<String, Value>,
    pub presence: Presence,
    /// The name of its policy.
    pub policy: String,
    pub is_default: bool,
}

/// Devices that are ports on the node, by an entry of a policy.
pub struct PortOnNode<'a> {
    pub field: Field,
    pub port: &'a Port,
    /// The pod whose device it is, and the device.
    pub pod: Option<(&'a Pod, &'a str)>,
    /// Whether what the pod chooses may count: a rollout in shadow mode changes nothing.
    pub may_choose: bool,
}

pub fn tenant_of_port(port: &Port) -> Option<&str> {
    port.table.get("tenant").and_then(Value::as_str)
}

pub fn is_enforced(mode: Option<&Value>) -> bool {
    mode.and_then(Value::as_str).is_none_or(|mode| mode == "enforce")
}

/// A treatment as the node has it.
pub fn as_present(mut table: Map<String, Value>, presence: Presence) -> Map<String, Value> {
    if presence == Presence::Shadow && is_enforced(table.get(MODE)) {
        put_in_shadow(&mut table);
    }
    table
}

/// Gives the names of a table the name of their policy, since other policies may have the same.
pub fn named(mut table: Map<String, Value>, policy: &str) -> Map<String, Value> {
    for key in ["name", "pool"] {
        if let Some(Value::String(name)) = table.get_mut(key) {
            *name = full_name(policy, name);
        }
    }
    table
}

/// A value, or a list of them.
pub fn list(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(values) => values.iter().collect(),
        Value::Null => Vec::new(),
        value => vec![value],
    }
}
