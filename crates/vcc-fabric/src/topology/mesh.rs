//! Guests around one switch, any of which may send to any other: every port has the network's queue
//! (AC/DC, 5.2). The bottleneck is the port of the busiest.

use super::{Builder, NetworkSpec, Node, Refusal, Topology};

pub(super) fn check(spec: &NetworkSpec) -> Result<(), Refusal> {
    match spec.guests {
        0 | 1 => Err(("topology", "a mesh needs at least 2 guests".into())),
        _ => Ok(()),
    }
}

pub(super) fn build(spec: &NetworkSpec) -> Topology {
    let mut network = Builder::new(spec);
    let ports = (0..spec.guests).map(|host| network.port(&format!("host {}", host + 1), host, 0));
    let bottleneck = ports.collect::<Vec<_>>()[spec.busiest];
    let probed = (Node::Switch(0), Node::Host(spec.busiest));
    network.finish(1, Vec::new(), bottleneck, probed)
}
