//! Networks as graphs of hosts, switches and links. A further topology is a file like [`star`]
//! and a line in [`TopologyKind`].

mod dumbbell;
mod probes;
mod star;

use super::queue::AnyQueue;
use super::{HostId, LinkId};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TopologyKind {
    Star,
    Dumbbell,
}

/// What every topology is built from.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkSpec {
    pub topology: TopologyKind,
    pub senders: usize,
    pub rate_bps: u64,
    /// Of the links that join hosts to switches, where they differ from the bottleneck.
    pub edge_rate_bps: u64,
    pub delay_ns: u64,
    /// Of the hosts' devices; switches carry whatever comes.
    pub mtu_bytes: u16,
    /// At the head of the bottleneck.
    pub queue: AnyQueue,
}

impl NetworkSpec {
    pub fn build(&self) -> Topology {
        match self.topology {
            TopologyKind::Star => star::build(self),
            TopologyKind::Dumbbell => dumbbell::build(self),
        }
    }

    /// The same with two more hosts that belong to nobody, at the ends of [`Topology::probes`].
    pub fn build_probed(&self) -> Topology {
        probes::add(self.build(), self)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Host(HostId),
    Switch(usize),
}

/// One direction.
#[derive(Debug, Clone)]
pub(super) struct LinkSpec {
    pub name: String,
    pub from: Node,
    pub to: Node,
    pub rate_bps: u64,
    pub delay_ns: u64,
    pub queue: AnyQueue,
}

/// No frame of Ethernet is shorter, without its checksum (IEEE 802.3, 4.4.2); a TAP's may be, as
/// bare ACKs are.
const FRAME_LEAST_BYTES: u64 = 54;

impl LinkSpec {
    /// From the first bit of a frame at the one end to its last bit at the other.
    pub fn least_ns(&self) -> u64 {
        self.delay_ns + FRAME_LEAST_BYTES * 8 * 1_000_000_000 / self.rate_bps
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeEnds {
    pub near: HostId,
    pub far: HostId,
}

/// A network with its routes. Hosts are numbered senders first.
#[derive(Debug, Clone)]
pub struct Topology {
    pub(super) links: Vec<LinkSpec>,
    pub receivers: Vec<HostId>,
    /// The receiver that each sender sends to.
    pub peers: Vec<HostId>,
    pub bottleneck: LinkId,
    /// Where probes start and where they turn round, in a network that was built for them.
    pub probes: Option<ProbeEnds>,
    /// What the bottleneck lies between.
    around_bottleneck: (Node, Node),
    /// Senders, receivers, and hosts for probes.
    hosts: usize,
    switches: usize,
    /// By node, then by destination: the link to take.
    routes: Vec<Vec<Option<LinkId>>>,
}

impl Topology {
    pub fn hosts(&self) -> usize {
        self.hosts
    }

    /// Of the link on which each host with a guest sends.
    pub fn guest_rates_bps(&self) -> Vec<u64> {
        let rate_bps = |host| {
            let uplink = self.links.iter().find(|link| link.from == Node::Host(host));
            uplink.map_or(0, |link| link.rate_bps)
        };
        let guests = self.peers.len() + self.receivers.len();
        (0..guests).map(rate_bps).collect()
    }

    pub(super) fn route(&self, from: Node, to: HostId) -> Option<LinkId> {
        self.routes[self.index(from)].get(to).copied().flatten()
    }

    fn index(&self, node: Node) -> usize {
        match node {
            Node::Host(host) => host,
            Node::Switch(switch) => self.hosts() + switch,
        }
    }

    /// Fills the routes: the fewest links to each host, found backwards from it.
    fn routed(mut self) -> Self {
        let hosts = self.hosts();
        self.routes = vec![vec![None; hosts]; hosts + self.switches];
        for destination in 0..hosts {
            let mut reached = VecDeque::from([Node::Host(destination)]);
            while let Some(node) = reached.pop_front() {
                for id in 0..self.links.len() {
                    let LinkSpec { from, to, .. } = self.links[id];
                    let at = self.index(from);
                    let is_known = from == Node::Host(destination);
                    if to == node && !is_known && self.routes[at][destination].is_none() {
                        self.routes[at][destination] = Some(id);
                        reached.push_back(from);
                    }
                }
            }
        }
        self
    }
}

/// Collects links while a topology is described.
struct Builder<'a> {
    spec: &'a NetworkSpec,
    links: Vec<LinkSpec>,
}

impl<'a> Builder<'a> {
    fn new(spec: &'a NetworkSpec) -> Self {
        Self { spec, links: Vec::new() }
    }

    fn link(&mut self, name: String, ends: (Node, Node), rate_bps: u64, queue: AnyQueue) -> LinkId {
        let (from, to) = ends;
        let delay_ns = self.spec.delay_ns;
        self.links.push(LinkSpec { name, from, to, rate_bps, delay_ns, queue });
        self.links.len() - 1
    }

    /// Both directions between a host and its switch, neither meant to be congested.
    fn edge(&mut self, name: &str, host: HostId, switch: usize) {
        self.links.extend(edge(self.spec, name, Node::Host(host), Node::Switch(switch)));
    }

    fn finish(self, switches: usize, peers: Vec<HostId>, bottleneck: LinkId) -> Topology {
        let mut receivers = peers.clone();
        receivers.dedup();
        let LinkSpec { from, to, .. } = self.links[bottleneck];
        let topology = Topology {
            links: self.links,
            hosts: self.spec.senders + receivers.len(),
            receivers,
            peers,
            bottleneck,
            probes: None,
            around_bottleneck: (from, to),
            switches,
            routes: Vec::new(),
        };
        topology.routed()
    }
}

fn edge(spec: &NetworkSpec, name: &str, host: Node, switch: Node) -> [LinkSpec; 2] {
    let link = |name: String, from, to| LinkSpec {
        name,
        from,
        to,
        rate_bps: spec.edge_rate_bps,
        delay_ns: spec.delay_ns,
        queue: AnyQueue::edge(),
    };
    [link(format!("{name}, up"), host, switch), link(format!("{name}, down"), switch, host)]
}
