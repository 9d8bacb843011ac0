//! The fabric: switches and links between hosts, in virtual time.
//!
//! Every frame carries the time at which it would be where it is. A host's frame enters at the
//! time it was read, and from then on all arithmetic (serialisation, delay, queues, marks) is
//! done on these times alone. How late the machine is only moves the moment of delivery.

mod frame;
mod link;
mod occupancy;
mod queue;
mod topology;

pub use frame::mac_of;
pub use link::LinkReport;
pub use queue::{AnyQueue, QueueSpec};
pub use topology::{NetworkSpec, Topology, TopologyKind};

use link::Link;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use topology::Node;

pub type HostId = usize;
pub type LinkId = usize;

/// The time in which statistics count, on the clock of the virtual time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Window {
    /// Nothing counts before somebody says when.
    pub const NEVER: Self = Self { start_ns: u64::MAX, end_ns: u64::MAX };

    pub fn contains(&self, now_ns: u64) -> bool {
        (self.start_ns..self.end_ns).contains(&now_ns)
    }
}

/// What a run wants to know about the fabric beyond the counters.
#[derive(Debug, Clone, Copy, Default)]
pub struct Watch {
    /// Sample the bottleneck's queue this often.
    pub queue_every_us: Option<u64>,
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
    events: BinaryHeap<Reverse<Event>>,
    order: u64,
    window: Window,
    ack_gaps: Option<Vec<AckGaps>>,
    spare: Vec<Vec<u8>>,
}

/// Times between the acknowledgements that go to one host.
#[derive(Debug, Clone, Default)]
struct AckGaps {
    last_ns: Option<u64>,
    gaps_us: Vec<u32>,
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
        Ok(Self {
            topology,
            links,
            events: BinaryHeap::new(),
            order: 0,
            window: Window::NEVER,
            ack_gaps: watch.ack_gaps.then(|| vec![AckGaps::default(); hosts]),
            spare: Vec::new(),
        })
    }

    pub fn set_window(&mut self, window: Window) {
        if window != self.window {
            self.window = window;
            self.links.iter_mut().for_each(|link| link.set_window(window));
        }
    }

    /// An empty buffer, used before if there is one.
    pub fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }

    /// A host has sent a frame.
    pub fn inject(&mut self, host: HostId, now_ns: u64, frame: Vec<u8>) {
        self.note_ack(host, now_ns, &frame);
        self.forward(Node::Host(host), now_ns, frame);
    }

    pub fn next_event_ns(&self) -> Option<u64> {
        self.events.peek().map(|Reverse(event)| event.due_ns)
    }

    /// Moves frames on up to `now_ns`, and returns the first that arrives at a host.
    pub fn next_delivery(&mut self, now_ns: u64) -> Option<Delivery> {
        while self.next_event_ns()? <= now_ns {
            let Reverse(event) = self.events.pop()?;
            let frame = self.links[event.link].arrive();
            match self.topology.links[event.link].to {
                Node::Host(host) => return Some(Delivery { host, due_ns: event.due_ns, frame }),
                switch => self.forward(switch, event.due_ns, frame),
            }
        }
        None
    }

    /// Ends the observation at the end of the window.
    pub fn report(&mut self) -> Vec<LinkReport> {
        self.links.iter_mut().map(Link::report).collect()
    }

    /// Gaps between acknowledgements by the host that they went to, in microseconds.
    pub fn take_ack_gaps(&mut self) -> Vec<Vec<u32>> {
        let gaps = self.ack_gaps.take().unwrap_or_default();
        gaps.into_iter().map(|host| host.gaps_us).collect()
    }

    fn forward(&mut self, from: Node, now_ns: u64, frame: Vec<u8>) {
        let route = frame::destination(&frame).and_then(|host| self.topology.route(from, host));
        let Some(link) = route else {
            self.spare.push(frame);
            return;
        };
        match self.links[link].offer(now_ns, frame) {
            Ok(due_ns) => {
                self.order += 1;
                self.events.push(Reverse(Event { due_ns, order: self.order, link }));
            }
            Err(dropped) => self.spare.push(dropped),
        }
    }

    fn note_ack(&mut self, from: HostId, now_ns: u64, frame: &[u8]) {
        let Some(all) = &mut self.ack_gaps else { return };
        if !self.topology.receivers.contains(&from) || !self.window.contains(now_ns) {
            return;
        }
        if let Some(ack) = frame::destination(frame).and_then(|to| all.get_mut(to)) {
            if let Some(last_ns) = ack.last_ns {
                ack.gaps_us.push(((now_ns - last_ns) / 1000) as u32);
            }
            ack.last_ns = Some(now_ns);
        }
    }
}

#[cfg(test)]
mod tests;
