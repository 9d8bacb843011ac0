//! Networks as graphs of hosts, switches and links. A further topology is a file like [`star`],
//! with its `mod`, and a line in [`topologies!`].

mod dumbbell;
mod mesh;
mod parking_lot;
mod probes;
mod routes;
mod star;
#[cfg(test)]
mod tests;
mod two_tier;

use super::memory::{Memory, MemorySpec};
use super::queue::AnyQueue;
use super::{HostId, LinkId};
use routes::Routes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// The field that is wrong, and what it may be.
type Refusal = (&'static str, String);

macro_rules! topologies {
    ($($variant:ident => $file:ident),* $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum TopologyKind { $($variant),* }

        impl NetworkSpec {
            pub fn build(&self) -> Topology {
                match self.topology { $(TopologyKind::$variant => $file::build(self)),* }
            }

            fn check_size(&self) -> Result<(), Refusal> {
                match self.topology { $(TopologyKind::$variant => $file::check(self)),* }
            }
        }
    };
}

topologies! {
    Star => star,
    Dumbbell => dumbbell,
    ParkingLot => parking_lot,
    Mesh => mesh,
    TwoTier => two_tier,
}

/// Parameters of a topology.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkSpec {
    pub topology: TopologyKind,
    /// Hosts with a guest.
    pub guests: usize,
    pub rate_bps: u64,
    /// Rate of the links between hosts and switches.
    pub edge_rate_bps: u64,
    pub delay_ns: u64,
    /// Delay of the links between guests and their switches, where it is not `delay_ns`.
    pub edge_delays_ns: BTreeMap<HostId, u64>,
    /// MTU of the hosts' devices; switches carry frames of any size.
    pub mtu_bytes: u16,
    /// At the head of the bottleneck, and of every other link that is meant to be congested.
    pub queue: AnyQueue,
    /// Memory of each switch; unlimited if left out.
    pub memory: Option<MemorySpec>,
    /// The guest whose port is the bottleneck, in topologies whose ports are all alike.
    pub busiest: HostId,
    /// Switches of a two-tier network.
    pub tiers: Tiers,
}

/// Number of switches of a two-tier network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tiers {
    pub leaves: usize,
    pub spines: usize,
}

impl NetworkSpec {
    /// Whether there can be such a network.
    pub fn check(&self) -> Result<(), Refusal> {
        let has_tiers = self.topology == TopologyKind::TwoTier;
        for (field, switches) in [("leaves", self.tiers.leaves), ("spines", self.tiers.spines)] {
            if has_tiers && switches == 0 {
                return Err((
                    field,
                    format!("a two-tier network needs 'leaves' and 'spines': no {field}"),
                ));
            }
            if !has_tiers && switches > 0 {
                return Err((field, "only valid for a two-tier network".into()));
            }
        }
        self.check_size()
    }

    /// [`Self::build`] with two more hosts, at the ends of [`Topology::probes`].
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

/// A network with its routes. Hosts are numbered guests first, then those that only receive, then
/// those for probes.
#[derive(Debug, Clone)]
pub struct Topology {
    pub(super) links: Vec<LinkSpec>,
    pub receivers: Range<HostId>,
    /// The receiver that each guest sends to by default; none in a network where all hosts are
    /// guests.
    pub peers: Vec<HostId>,
    pub bottleneck: LinkId,
    /// Ends of the probes' path, in a network that was built with probes.
    pub probes: Option<ProbeEnds>,
    /// The way that probes are to go: the bottleneck lies on it.
    probed: (Node, Node),
    hosts: usize,
    switches: usize,
    memory: Option<MemorySpec>,
    routes: Routes,
}

impl Topology {
    pub fn hosts(&self) -> usize {
        self.hosts
    }

    /// Rate of the uplink of each guest and each receiver.
    pub fn guest_rates_bps(&self) -> Vec<u64> {
        let rate_bps = |host| {
            let uplink = self.links.iter().find(|link| link.from == Node::Host(host));
            uplink.map_or(0, |link| link.rate_bps)
        };
        (0..self.receivers.end).map(rate_bps).collect()
    }

    /// Memory of each switch, if it is limited.
    pub(super) fn memories(&self) -> Vec<Memory> {
        self.memory.as_ref().map_or_else(Vec::new, |spec| spec.build(self.switches))
    }

    /// The link that a frame takes from a node on its way from one host to another.
    pub(super) fn route(&self, at: Node, from: HostId, to: HostId) -> Option<LinkId> {
        self.routes.next(self.index(at), from, to)
    }

    /// All links from one host to another; none if there is no way.
    fn path(&self, from: HostId, to: HostId) -> Vec<LinkId> {
        let mut at = Node::Host(from);
        let mut path = Vec::new();
        while let Some(link) = self.route(at, from, to) {
            path.push(link);
            at = self.links[link].to;
        }
        path
    }

    pub fn crosses_bottleneck(&self, from: HostId, to: HostId) -> bool {
        self.path(from, to).contains(&self.bottleneck)
    }

    fn index(&self, node: Node) -> usize {
        match node {
            Node::Host(host) => host,
            Node::Switch(switch) => self.hosts + switch,
        }
    }

    fn routed(mut self) -> Self {
        let ends = self.links.iter().map(|link| (self.index(link.from), self.index(link.to)));
        self.routes =
            Routes::find(self.hosts, self.hosts + self.switches, &ends.collect::<Vec<_>>());
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

    /// An edge with the network's queue at the switch's port, whose link is returned.
    fn port(&mut self, name: &str, host: HostId, switch: usize) -> LinkId {
        self.edge(name, host, switch);
        let port = self.links.len() - 1;
        self.links[port].rate_bps = self.spec.rate_bps;
        self.links[port].queue = self.spec.queue.clone();
        port
    }

    /// `peers` are the receivers of the guests; probes go from the one node to the other.
    fn finish(
        self,
        switches: usize,
        peers: Vec<HostId>,
        bottleneck: LinkId,
        probed: (Node, Node),
    ) -> Topology {
        let guests = self.spec.guests;
        let hosts = peers.iter().max().map_or(guests, |last| last + 1);
        let topology = Topology {
            links: self.links,
            hosts,
            receivers: guests..hosts,
            peers,
            bottleneck,
            probes: None,
            probed,
            switches,
            memory: self.spec.memory.clone(),
            routes: Routes::default(),
        };
        topology.routed()
    }
}

fn edge(spec: &NetworkSpec, name: &str, host: Node, switch: Node) -> [LinkSpec; 2] {
    let own_delay_ns = match host {
        Node::Host(host) => spec.edge_delays_ns.get(&host),
        Node::Switch(_) => None,
    };
    let link = |name: String, from, to| LinkSpec {
        name,
        from,
        to,
        rate_bps: spec.edge_rate_bps,
        delay_ns: *own_delay_ns.unwrap_or(&spec.delay_ns),
        queue: AnyQueue::edge(),
    };
    [link(format!("{name}, up"), host, switch), link(format!("{name}, down"), switch, host)]
}

/// Accepts networks of any size.
fn any_size(_: &NetworkSpec) -> Result<(), Refusal> {
    Ok(())
}
