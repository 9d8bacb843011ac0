//! Switches in a row, one sender at each, one receiver behind the last: each flow crosses one
//! bottleneck fewer than that of the sender before it (AC/DC, figure 7b). Probes cross all of them;
//! *the* bottleneck is the last, which all flows share.

use super::{Builder, NetworkSpec, Node, Refusal, Topology};
use crate::AnyQueue;

pub(super) fn check(spec: &NetworkSpec) -> Result<(), Refusal> {
    match spec.guests {
        0 | 1 => Err(("topology", "a parking lot needs at least 2 guests".into())),
        _ => Ok(()),
    }
}

pub(super) fn build(spec: &NetworkSpec) -> Topology {
    let mut network = Builder::new(spec);
    let last = spec.guests - 1;
    for sender in 0..spec.guests {
        network.edge(&format!("sender {}", sender + 1), sender, sender);
    }
    for hop in 0..last {
        let (here, next) = (Node::Switch(hop), Node::Switch(hop + 1));
        let name = format!("hop {}", hop + 1);
        network.link(format!("{name}, back"), (next, here), spec.rate_bps, AnyQueue::edge());
        network.link(name, (here, next), spec.rate_bps, spec.queue.clone());
    }
    let receiver = spec.guests;
    let (host, switch) = (Node::Host(receiver), Node::Switch(last));
    network.link("receiver, up".into(), (host, switch), spec.rate_bps, AnyQueue::edge());
    let queue = spec.queue.clone();
    let bottleneck = network.link("bottleneck".into(), (switch, host), spec.rate_bps, queue);
    let probed = (Node::Switch(0), host);
    network.finish(spec.guests, vec![receiver; spec.guests], bottleneck, probed)
}
