//! What an agent needs of its node.

use std::collections::BTreeMap;

use crate::resource::Pod;

pub trait Host: Send + 'static {
    /// The devices of those pods that have one, by UID.
    fn devices(&mut self, pods: &[&Pod]) -> BTreeMap<String, String>;

    /// Puts a policy in force, for all connections when this returns. An error changes nothing.
    fn apply(&mut self, edition: &str, text: &str) -> Result<(), String>;

    fn usage(&mut self) -> Usage;

    /// What the connections under each rule did since the host began to count.
    fn activity(&mut self) -> Vec<RuleActivity>;

    /// The pods whose choices are refused now, and why, a sentence each.
    fn refused_choices(&mut self, refused: &[String]);

    /// What lasts between the agent and the API server; to be shown on the node itself.
    fn troubles(&mut self, troubles: Vec<String>);
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub ports: u64,
    pub flows: u64,
    /// Problems that the operator has to solve.
    pub problems: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleActivity {
    /// As in the node's policy.
    pub name: String,
    /// Live ones.
    pub flows: u64,
    /// Segments that guests retransmitted.
    pub retransmissions: u64,
    /// Payload that was acknowledged.
    pub acked_bytes: u64,
    /// The median of the live connections' smoothed round-trip times; 0: none has one.
    pub rtt_us: u64,
}
