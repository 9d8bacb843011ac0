//! The fabric: switches and links between hosts, in virtual time.
//!
//! Every frame carries the time at which it would be where it is. A host's frame enters at the
//! time it was read, and from then on all arithmetic (serialisation, delay, queues, marks) is
//! done on these times alone. How late the machine is only moves the moment of delivery.

mod ack_gaps;
mod ect;
mod frame;
mod impair;
mod link;
mod memory;
mod occupancy;
mod path_mtu;
mod probes;
mod queue;
mod topology;

pub use ect::Ect;
pub use frame::mac_of;
pub use impair::Impairments;
pub use link::LinkReport;
pub use memory::MemorySpec;
pub use path_mtu::PathMtu;
pub use probes::{PROBE_BYTES, ProbeReport, RttSample};
pub use queue::{AnyQueue, QueueSpec};
pub use topology::{NetworkSpec, Tiers, Topology, TopologyKind};

use ack_gaps::AckGaps;
use ect::EctCounters;
use impair::Impairer;
use link::Link;
use memory::Memory;
use path_mtu::Fits;
use probes::Probes;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use topology::{LinkSpec, Node};

/// Buffers that are kept to be used again.
const SPARE_MOST: usize = 1024;

pub type HostId = usize;
pub type LinkId = usize;

/// The time in which statistics count, on the clock of the virtual time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Window {
    /// No window has been set.
    pub const NEVER: Self = Self { start_ns: u64::MAX, end_ns: u64::MAX };

    pub fn contains(&self, now_ns: u64) -> bool {
        (self.start_ns..self.end_ns).contains(&now_ns)
    }
}

/// Recordings beyond the counters.
#[derive(Debug, Clone, Copy, Default)]
pub struct Watch {
    /// Sample the bottleneck's queue this often.
    pub queue_every_us: Option<u64>,
    /// Send a probe through the bottleneck about this often.
    pub probe_every_us: Option<u64>,
    /// Keep the time between frames that leave a receiver, for each sender.
    pub ack_gaps: bool,
}

/// A frame that has arrived at a host.
#[derive(Debug)]
pub struct Delivery {
    pub host: HostId,
    pub due_ns: u64,
    pub frame: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    due_ns: u64,
    /// Breaks ties in the order of creation, so that links stay first-in first-out.
    order: u64,
    link: LinkId,
}

pub struct Fabric {
    topology: Topology,
    links: Vec<Link>,
    /// Memory of each switch, if it is limited.
    memories: Vec<Memory>,
    lookahead_ns: u64,
    events: BinaryHeap<Reverse<Event>>,
    order: u64,
    window: Window,
    probes: Option<Probes>,
    ack_gaps: Option<AckGaps>,
    ect: EctCounters,
    impairer: Option<Impairer>,
    path_mtus: Vec<PathMtu>,
    spare: Vec<Vec<u8>>,
    /// Nothing is left to move up to this time: all that hosts sent until then has come in when the
    /// next delivery is asked for.
    moved_to_ns: Option<u64>,
}

impl Fabric {
    pub fn new(topology: Topology, seed: u64, watch: Watch) -> Result<Self, String> {
        let bottleneck = topology.bottleneck;
        let links = topology
            .links
            .iter()
            .enumerate()
            .map(|(id, spec)| {
                let every_us = watch.queue_every_us.filter(|_| id == bottleneck);
                Link::new(spec.clone(), seed.wrapping_add(id as u64), every_us)
            })
            .collect::<Result<_, _>>()?;
        let hosts = topology.hosts();
        let probes = topology.probes.zip(watch.probe_every_us);
        Ok(Self {
            probes: probes.map(|(ends, every_us)| Probes::new(ends, every_us, seed)),
            ect: EctCounters::new(hosts),
            impairer: None,
            path_mtus: Vec::new(),
            memories: topology.memories(),
            lookahead_ns: lookahead_ns(&topology),
            topology,
            links,
            events: BinaryHeap::new(),
            order: 0,
            window: Window::NEVER,
            ack_gaps: watch.ack_gaps.then(|| AckGaps::new(hosts)),
            spare: Vec::new(),
            moved_to_ns: None,
        })
    }

    /// From now on, this happens to frames, but for probes.
    pub fn impair(&mut self, impairments: Impairments, seed: u64) {
        self.impairer = Some(Impairer::new(impairments, seed));
    }

    /// What the path to each host carries, in order of time. Until the first, and without any, it
    /// carries everything.
    pub fn set_path_mtus(&mut self, path_mtus: Vec<PathMtu>) {
        debug_assert!(path_mtus.is_sorted_by_key(|mtu| mtu.from_ns));
        self.path_mtus = path_mtus;
    }

    pub fn set_window(&mut self, window: Window) {
        if window != self.window {
            self.window = window;
            self.links.iter_mut().for_each(|link| link.set_window(window));
            self.probes.iter_mut().for_each(|probes| probes.set_window(window));
        }
    }

    /// An empty buffer, used before if there is one.
    pub fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    pub fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE_MOST {
            self.spare.push(buffer);
        }
    }

    /// A host has sent a frame.
    pub fn inject(&mut self, host: HostId, now_ns: u64, frame: Vec<u8>) {
        if self.window.contains(now_ns) {
            self.ect.note(host, &frame);
            if let Some(gaps) = &mut self.ack_gaps {
                if self.topology.receivers.contains(&host) {
                    gaps.note(now_ns, &frame);
                }
            }
        }
        self.turn_probes(now_ns);
        self.forward(Node::Host(host), now_ns, frame);
    }

    /// A frame reaches no other node for this long: the least time that the first link takes.
    pub fn lookahead_ns(&self) -> u64 {
        self.lookahead_ns
    }

    pub fn next_event_ns(&self) -> Option<u64> {
        // A probe that turns round is on its link before anything happens to it.
        let turns_ns = self.probes.as_ref().and_then(Probes::turns_ns);
        let turned_ns = turns_ns.map(|turns_ns| turns_ns + self.lookahead_ns);
        self.next_move_ns().into_iter().chain(turned_ns).min()
    }

    fn next_move_ns(&self) -> Option<u64> {
        let arrival_ns = self.events.peek().map(|Reverse(event)| event.due_ns);
        arrival_ns.into_iter().chain(self.next_probe_ns()).chain(self.next_late_ns()).min()
    }

    fn next_late_ns(&self) -> Option<u64> {
        self.impairer.as_ref().and_then(Impairer::next_ns)
    }

    fn next_probe_ns(&self) -> Option<u64> {
        self.probes.as_ref().and_then(Probes::due_ns)
    }

    /// Moves frames on up to `now_ns`, and returns the first that arrives at a host.
    pub fn next_delivery(&mut self, now_ns: u64) -> Option<Delivery> {
        if let Some(known_ns) = self.moved_to_ns.take() {
            self.turn_probes(known_ns);
        }
        loop {
            let Some(due_ns) = self.next_move_ns().filter(|&due_ns| due_ns <= now_ns) else {
                self.moved_to_ns = Some(now_ns);
                return None;
            };
            if self.next_probe_ns() == Some(due_ns) {
                self.launch_probe(due_ns);
                continue;
            }
            if self.next_late_ns() == Some(due_ns) {
                return self.impairer.as_mut().and_then(Impairer::next);
            }
            let Reverse(event) = self.events.pop()?;
            let frame = self.links[event.link].arrive();
            match self.topology.links[event.link].to {
                Node::Host(host) => {
                    let Some(frame) = self.received(host, due_ns, frame) else { continue };
                    if let Fits::No { answer } = path_mtu::fits(&self.path_mtus, due_ns, &frame) {
                        self.recycle(frame);
                        let router = self.topology.links[event.link].from;
                        answer.into_iter().for_each(|answer| self.forward(router, due_ns, answer));
                        continue;
                    }
                    let Some(impairer) = &mut self.impairer else {
                        return Some(Delivery { host, due_ns, frame });
                    };
                    if let Some(lost) = impairer.arrive(host, due_ns, frame) {
                        self.recycle(lost);
                    }
                }
                switch => self.forward(switch, due_ns, frame),
            }
        }
    }

    fn launch_probe(&mut self, now_ns: u64) {
        let mut frame = self.buffer();
        let Some(probes) = &mut self.probes else { return };
        let from = probes.launch(&mut frame);
        self.forward(Node::Host(from), now_ns, frame);
    }

    /// Sends those back that turned round by then.
    fn turn_probes(&mut self, by_ns: u64) {
        while let Some((from, at_ns, frame)) =
            self.probes.as_mut().and_then(|probes| probes.turned(by_ns))
        {
            self.forward(Node::Host(from), at_ns, frame);
        }
    }

    /// A frame that arrived at a host; probes end here.
    fn received(&mut self, host: HostId, now_ns: u64, frame: Vec<u8>) -> Option<Vec<u8>> {
        let Some(probes) = self.probes.as_mut().filter(|probes| probes.is_probe(&frame)) else {
            return Some(frame);
        };
        if let Some(buffer) = probes.arrive(host, now_ns, frame) {
            self.recycle(buffer);
        }
        None
    }

    pub fn take_probes(&mut self) -> ProbeReport {
        self.probes.as_mut().map(Probes::report).unwrap_or_default()
    }

    /// ECN of each host's data frames.
    pub fn take_ect(&mut self) -> Vec<Ect> {
        self.ect.take()
    }

    /// Ends the observation at the end of the window.
    pub fn report(&mut self) -> Vec<LinkReport> {
        self.links.iter_mut().map(Link::report).collect()
    }

    /// Gaps between acknowledgements by the host that they went to, in microseconds.
    pub fn take_ack_gaps(&mut self) -> Vec<Vec<u32>> {
        self.ack_gaps.take().map(AckGaps::into_gaps_us).unwrap_or_default()
    }

    fn forward(&mut self, at: Node, now_ns: u64, frame: Vec<u8>) {
        let route = frame::destination(&frame).and_then(|to| {
            let from = frame::source(&frame).unwrap_or(to);
            self.topology.route(at, from, to)
        });
        let Some(link) = route else {
            self.recycle(frame);
            return;
        };
        let memory = match at {
            Node::Host(_) => None,
            Node::Switch(switch) => self.memories.get_mut(switch),
        };
        match self.links[link].offer(now_ns, frame, memory) {
            Ok(due_ns) => {
                self.order += 1;
                self.events.push(Reverse(Event { due_ns, order: self.order, link }));
            }
            Err(dropped) => {
                if let Some(probes) = self.probes.as_mut().filter(|it| it.is_probe(&dropped)) {
                    probes.note_loss();
                }
                self.recycle(dropped);
            }
        }
    }
}

fn lookahead_ns(topology: &Topology) -> u64 {
    let first = topology.links.iter().filter(|link| matches!(link.from, Node::Host(_)));
    first.map(LinkSpec::least_ns).min().unwrap_or(1)
}

#[cfg(test)]
mod tests;
