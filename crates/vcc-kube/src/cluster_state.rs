//! The pods, namespaces and devices that the policies refer to.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::Reading;
use crate::resource::{Labels, Pod};
use crate::selector::PodSelector;

#[derive(Clone, Debug, Default)]
pub struct ClusterState {
    /// The labels of namespaces, by name.
    pub namespaces: BTreeMap<String, Labels>,
    /// The node's own pods, by UID.
    pub own: BTreeMap<String, Pod>,
    /// Their devices in the host, by UID.
    pub devices: BTreeMap<String, String>,
    /// Pods of the whole cluster that rules name as peers, by UID.
    pub peers: BTreeMap<String, Pod>,
    /// The selectors of peers whose pods are not listed yet.
    pub missing_peers: BTreeSet<String>,
    /// Namespaces are not listed yet, and some selector asks for their labels.
    pub are_namespaces_missing: bool,
}

impl ClusterState {
    pub fn is_complete(&self) -> bool {
        self.missing_peers.is_empty() && !self.are_namespaces_missing
    }

    /// Whether a selector means a pod.
    pub fn selects(&self, selector: &PodSelector, pod: &Pod) -> bool {
        selector.matches(pod, self.namespaces.get(&pod.namespace))
    }

    /// The node's pods that have devices, by namespace and name.
    pub fn own_with_devices(&self) -> Vec<(&Pod, &str)> {
        let device = |pod: &'_ Pod| self.devices.get(&pod.uid).map(String::as_str);
        let mut pods: Vec<(&Pod, &str)> = self
            .own
            .values()
            .filter(|pod| has_device(pod))
            .filter_map(|pod| Some((pod, device(pod)?)))
            .collect();
        pods.sort_by_key(|(pod, _)| (&pod.namespace, &pod.name));
        pods
    }

    /// The node's pods whose devices are not known, though they should have one by now.
    pub fn without_device(&self) -> impl Iterator<Item = &Pod> {
        let own = self.own.values();
        own.filter(|pod| has_device(pod) && !self.devices.contains_key(&pod.uid))
    }
}

/// Whether a pod has, or will have, a device of its own.
pub fn has_device(pod: &Pod) -> bool {
    !pod.host_network && !pod.has_ended
}

/// The objects to watch for policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Some selector asks for labels of namespaces.
    pub namespaces: bool,
    /// Selectors of pods that are peers, as the API server reads them.
    pub peers: BTreeSet<String>,
}

impl Needs {
    pub fn from_readings<'a>(readings: impl Iterator<Item = &'a Reading>) -> Self {
        let mut needs = Self::default();
        for reading in readings {
            let ports = reading.spec.ports.iter().filter_map(|port| port.pods.as_ref());
            let peers = || reading.spec.rules.iter().filter_map(|rule| rule.peers.as_ref());
            needs.namespaces |= ports.chain(peers()).any(|it| it.namespaces.is_some());
            needs.peers.extend(peers().map(PodSelector::of_pods));
        }
        needs
    }
}
