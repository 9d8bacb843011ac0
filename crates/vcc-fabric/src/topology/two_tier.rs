//! Guests at leaf switches, each leaf joined to every spine. The guests fill the leaves in their
//! order, as many at each. Every port has the network's queue; the bottleneck is that of the
//! busiest guest, and probes come to it from the leaf after its own.

use super::{Builder, NetworkSpec, Node, Refusal, Topology};

pub(super) fn check(spec: &NetworkSpec) -> Result<(), Refusal> {
    let (guests, leaves) = (spec.guests, spec.tiers.leaves);
    match guests {
        _ if leaves > guests => {
            Err(("leaves", format!("{guests} guests cannot fill {leaves} leaves")))
        }
        0 | 1 => Err(("topology", "a two-tier network needs at least 2 guests".into())),
        _ => Ok(()),
    }
}

pub(super) fn build(spec: &NetworkSpec) -> Topology {
    let mut network = Builder::new(spec);
    let (leaves, spines) = (spec.tiers.leaves, spec.tiers.spines);
    // Some leaves have one more where the guests do not come out even.
    let leaf_of = |host: usize| host * leaves / spec.guests;
    let ports = (0..spec.guests)
        .map(|host| network.port(&format!("host {}", host + 1), host, leaf_of(host)));
    let bottleneck = ports.collect::<Vec<_>>()[spec.busiest];
    for leaf in 0..leaves {
        for spine in 0..spines {
            let name = format!("leaf {}, spine {}", leaf + 1, spine + 1);
            let (low, high) = (Node::Switch(leaf), Node::Switch(leaves + spine));
            let queue = || spec.queue.clone();
            network.link(format!("{name}, up"), (low, high), spec.rate_bps, queue());
            network.link(format!("{name}, down"), (high, low), spec.rate_bps, queue());
        }
    }
    let across = Node::Switch((leaf_of(spec.busiest) + 1) % leaves);
    let probed = (across, Node::Host(spec.busiest));
    network.finish(leaves + spines, Vec::new(), bottleneck, probed)
}
