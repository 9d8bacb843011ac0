//! Runs all flows of a run in the calling thread.

use super::flow::{CHUNK_BYTES, Flow, FlowResult};
use super::{FlowSpec, socket};
use crate::emulator::Control;
use crate::error::{Error, Result};
use crate::fabric::Window;
use crate::hosts::Hosts;
use crate::system::{Epoll, become_realtime, now_ns};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;

const PORT: u16 = 5001;
/// Below the emulator, above everything else.
const REALTIME_PRIORITY: i32 = 40;
const LONGEST_SLEEP_NS: u64 = 10_000_000;

#[derive(Debug, Clone)]
pub struct Plan {
    pub flows: Vec<FlowSpec>,
    pub warm_up_ns: u64,
    pub measured_ns: u64,
    /// How often the windows of sampled flows are read.
    pub sample_every_us: Option<u64>,
    pub seed: u64,
}

/// Connects all flows, lets them warm up, measures, and returns with every socket closed.
pub fn run(plan: &Plan, hosts: &Hosts, control: &Control) -> Result<Vec<FlowResult>> {
    let mut flows = open_all(plan, hosts)?;
    // The emulator reports its own lack of this; one warning is enough.
    let _ = become_realtime(REALTIME_PRIORITY);
    Pump::new(&flows)?.run(&mut flows, plan, control)?;
    Ok(flows.into_iter().map(Flow::into_result).collect())
}

fn open_all(plan: &Plan, hosts: &Hosts) -> Result<Vec<Flow>> {
    let mut listeners = BTreeMap::new();
    let mut flows = Vec::with_capacity(plan.flows.len());
    for (number, spec) in plan.flows.iter().enumerate() {
        let to = SocketAddr::new(hosts.address(spec.receiver), PORT);
        let listener = match listeners.entry(spec.receiver) {
            Entry::Occupied(listener) => listener.into_mut(),
            Entry::Vacant(place) => {
                let guest = hosts.guest(spec.receiver);
                let congestion_control = &spec.congestion_control;
                place.insert(guest.inside(|| socket::listen(to, congestion_control))?)
            }
        };
        flows.push(Flow::open(number, spec, hosts, listener, to, plan.seed)?);
    }
    Ok(flows)
}

/// Moves data through sockets. Tokens of the epoll set: senders first, then receivers.
struct Pump {
    epoll: Epoll,
    scratch: Vec<u8>,
    ready: Vec<usize>,
}

impl Pump {
    fn new(flows: &[Flow]) -> Result<Self> {
        let epoll = Epoll::new()?;
        for (number, flow) in flows.iter().enumerate() {
            epoll.add(flow.sender_fd(), libc::EPOLLOUT | libc::EPOLLET, number)?;
            epoll.add(flow.receiver_fd(), libc::EPOLLIN, flows.len() + number)?;
        }
        Ok(Self { epoll, scratch: vec![0; 2 * CHUNK_BYTES], ready: Vec::new() })
    }

    fn run(&mut self, flows: &mut [Flow], plan: &Plan, control: &Control) -> Result<()> {
        let start_ns = now_ns() + plan.warm_up_ns;
        let window = Window { start_ns, end_ns: start_ns + plan.measured_ns };
        control.set_window(window);
        self.until(window.start_ns, flows, control)?;
        flows.iter_mut().try_for_each(Flow::start_measuring)?;
        if let Some(every_us) = plan.sample_every_us {
            let samples = plan.measured_ns / (every_us * 1000);
            for sample in 0..samples {
                self.until(start_ns + sample * every_us * 1000, flows, control)?;
                let at_us = (now_ns() - start_ns) / 1000;
                flows.iter_mut().try_for_each(|flow| flow.sample(at_us))?;
            }
        }
        self.until(window.end_ns, flows, control)?;
        flows.iter_mut().try_for_each(Flow::finish)
    }

    fn until(&mut self, end_ns: u64, flows: &mut [Flow], control: &Control) -> Result<()> {
        loop {
            let left_ns = end_ns.saturating_sub(now_ns());
            if control.is_stopped() {
                return Err(Error::Interrupted);
            }
            if left_ns == 0 {
                return Ok(());
            }
            self.ready.clear();
            self.ready.extend(self.epoll.wait(left_ns.min(LONGEST_SLEEP_NS))?);
            for &token in &self.ready {
                match flows.len() {
                    senders if token < senders => flows[token].send(&mut self.scratch)?,
                    senders => flows[token - senders].receive(&mut self.scratch)?,
                }
            }
        }
    }
}
