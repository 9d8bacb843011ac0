//! Senders and receivers, where it is not each guest to its receiver.

use super::group::Group;
use crate::experiment::bounded::{Share, Workers};
use serde::Deserialize;
use std::collections::BTreeMap;
use vcc_traffic::Pattern;

/// Flows that are alike.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowGroup {
    pub name: String,
    /// The group of guests that send.
    pub from: String,
    #[serde(default)]
    pub pattern: FlowPattern,
    /// For a stride: distances from the sender to its receivers.
    #[serde(default)]
    pub steps: Vec<u32>,
    /// For an incast: the group of guests that receive.
    #[serde(default)]
    pub to: Option<String>,
    #[serde(default)]
    pub traffic: Pattern,
    /// For messages, transfers and requests: how many applications of each guest send, each over
    /// flows of its own.
    #[serde(default)]
    pub workers: Option<Workers>,
    /// For requests of clients: which of the file's `requests` they make, and how often in
    /// proportion to the others.
    #[serde(default)]
    pub asks: BTreeMap<String, Share>,
    /// The first and the last phase in which they are there; all of them if left out.
    #[serde(default)]
    pub phases: Option<[u32; 2]>,
}

impl FlowGroup {
    /// The flows of a group of guests where the file has no `[[flows]]`.
    pub fn of_guests(group: &Group) -> Self {
        Self {
            name: group.name.clone(),
            from: group.name.clone(),
            pattern: FlowPattern::Peers,
            steps: Vec::new(),
            to: None,
            traffic: group.traffic,
            workers: None,
            asks: BTreeMap::new(),
            phases: group.phases,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowPattern {
    /// Each guest to the receiver that the topology has for it.
    #[default]
    Peers,
    /// Each guest to others of its group, by their places in the circle.
    Stride,
    /// Each guest to all others of its group.
    AllToAll,
    /// Each guest to each of another group.
    Incast,
}
