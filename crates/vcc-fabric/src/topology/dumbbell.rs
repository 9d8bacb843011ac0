//! N senders at one switch, N receivers at another, the bottleneck between the switches.

use super::{Builder, NetworkSpec, Node, Topology};
use crate::AnyQueue;

pub(super) use super::any_size as check;

const NEAR: usize = 0;
const FAR: usize = 1;

pub(super) fn build(spec: &NetworkSpec) -> Topology {
    let mut network = Builder::new(spec);
    for pair in 0..spec.guests {
        network.edge(&format!("sender {}", pair + 1), pair, NEAR);
        network.edge(&format!("receiver {}", pair + 1), spec.guests + pair, FAR);
    }
    let (near, far) = (Node::Switch(NEAR), Node::Switch(FAR));
    network.link("bottleneck, back".into(), (far, near), spec.rate_bps, AnyQueue::edge());
    let queue = spec.queue.clone();
    let bottleneck = network.link("bottleneck".into(), (near, far), spec.rate_bps, queue);
    network.finish(2, (spec.guests..2 * spec.guests).collect(), bottleneck, (near, far))
}
