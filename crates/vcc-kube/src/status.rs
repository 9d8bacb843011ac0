//! What the resources' statuses say.

use serde::{Deserialize, Serialize};

/// The status of a VccNode: what one node does with the policies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    /// Equal on all nodes that have the same generations of the same policies in force.
    pub edition: String,
    /// In their order.
    pub policies: Vec<PolicyOnNode>,
    /// More policies, which are beyond what a node reads.
    pub policies_not_read: u64,
    pub ports: u64,
    /// Pods that policies select, and whose devices are not found.
    pub pods_without_device: u64,
    /// Pods whose choices of a mode or an underlay are followed.
    pub pods_with_choice: u64,
    /// Pods whose choices are refused, which keep the policy's settings.
    pub pods_with_refused_choice: u64,
    /// The first of these, and why.
    pub refused_choices: Vec<String>,
    pub flows: u64,
    /// Of all connections at its ports.
    pub activity: Option<Activity>,
    /// Problems that the operator has to solve.
    pub problems: Vec<String>,
    /// The first of these, or an empty text: for a column.
    pub problem: String,
    pub kernel: String,
    pub version: String,
    /// When this was written, in RFC 3339.
    pub updated: String,
}

impl NodeStatus {
    /// Without what changes all the time.
    pub fn without_counts(&self) -> Self {
        Self { flows: 0, activity: None, ..self.clone() }
    }
}

/// What one node does with one policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyOnNode {
    pub name: String,
    /// The generation that the node has read.
    pub generation: i64,
    /// The generation in force; 0: none.
    pub in_force: i64,
    /// How it is in force: [`AS_WRITTEN`], [`IN_SHADOW`], [`ABSENT`] or [`REFUSED`].
    pub mode: String,
    /// Why `generation` is not in force, and warnings.
    pub messages: Vec<String>,
}

pub const AS_WRITTEN: &str = "as written";
pub const IN_SHADOW: &str = "shadow";
pub const ABSENT: &str = "absent";
/// No generation of it was ever fit to be in force.
pub const REFUSED: &str = "refused";

/// What connections did in the time between the last two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Activity {
    pub seconds: u64,
    /// Live ones at the end of that time.
    pub flows: u64,
    /// Segments that guests retransmitted.
    pub retransmissions: u64,
    /// Payload that was acknowledged.
    pub acked_bytes: u64,
    /// The median of the live connections' smoothed round-trip times; 0: none has one.
    pub rtt_us: u64,
}

/// The status of a VccPolicy: what all nodes do with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyStatus {
    /// The generation that this is about.
    pub observed_generation: i64,
    /// Nodes with an agent.
    pub nodes: u64,
    /// Those that have this generation in force, or absent because of its rollout.
    pub current: u64,
    /// Those that refused it, and have an earlier one in force or none.
    pub refused: u64,
    /// Those without a report for minutes: their state is unknown.
    pub silent: u64,
    /// `current` of `nodes`: for a column.
    pub everywhere: String,
    /// The message of a node that refused it, a warning, or the name of a silent node.
    pub message: String,
    /// With a canary: its nodes, and the others.
    pub canary: Option<Group>,
    pub others: Option<Group>,
    /// When this was written, in RFC 3339.
    pub updated: String,
}

/// The nodes that have a policy in one way, and all their connections: those that a rule of it would match
/// are under other rules where it is not in force, and a hash of the nodes' names makes the groups alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Group {
    pub nodes: u64,
    pub mode: String,
    pub flows: u64,
    pub retransmissions: u64,
    pub acked_bytes: u64,
    /// Retransmitted segments for each gigabyte that was acknowledged: for a column.
    pub retransmissions_per_gb: String,
    /// The median of the nodes' medians, by their flows: for a column.
    pub rtt: String,
}
