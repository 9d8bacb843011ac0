//! Hosts for probes, on both sides of the bottleneck.

use super::{NetworkSpec, Node, ProbeEnds, Topology, edge};

/// If the path ends at a host, probes turn round there, else at a host of their own behind the last
/// switch. They start at a host of their own, so that no sender's link delays them.
pub(super) fn add(mut topology: Topology, spec: &NetworkSpec) -> Topology {
    let (before, after) = topology.probed;
    let mut host_at = |place: Node, name: &str| match place {
        Node::Host(host) => host,
        switch => {
            let host = topology.hosts;
            topology.hosts += 1;
            topology.links.extend(edge(spec, name, Node::Host(host), switch));
            host
        }
    };
    let near = host_at(before, "probes");
    let far = host_at(after, "probes' peer");
    topology.probes = Some(ProbeEnds { near, far });
    topology.routed()
}
