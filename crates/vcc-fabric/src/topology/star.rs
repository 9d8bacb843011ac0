//! N senders and one receiver around one switch; the bottleneck is the link to the receiver
//! (vCC, 3.1).

use super::{Builder, NetworkSpec, Node, Topology};
use crate::AnyQueue;

pub(super) use super::any_size as check;

pub(super) fn build(spec: &NetworkSpec) -> Topology {
    let mut network = Builder::new(spec);
    for sender in 0..spec.guests {
        network.edge(&format!("sender {}", sender + 1), sender, 0);
    }
    let receiver = spec.guests;
    let (host, switch) = (Node::Host(receiver), Node::Switch(0));
    network.link("receiver, up".into(), (host, switch), spec.rate_bps, AnyQueue::edge());
    let queue = spec.queue.clone();
    let bottleneck = network.link("bottleneck".into(), (switch, host), spec.rate_bps, queue);
    network.finish(1, vec![receiver; spec.guests], bottleneck, (switch, host))
}
