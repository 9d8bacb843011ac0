//! Hosts for probes, on both sides of the bottleneck.

use super::{NetworkSpec, Node, ProbeEnds, Topology, edge};

/// Where their way leads to a host, probes turn round there; behind a switch, at a host of their own.
/// They start at a host of their own, so that no sender's link delays them.
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
