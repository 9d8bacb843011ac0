//! Runs all flows of a run in the calling thread.

use super::flow::Flow;
use super::senders::Senders;
use super::socket;
use crate::backend::live::emulator::Control;
use crate::backend::live::hosts::Hosts;
use crate::base::error::{Error, Result};
use crate::base::system::{Epoll, become_realtime, now_ns};
use crate::scenario::Plan;
use socket2::Socket;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;
use vcc_fabric::Window;
use vcc_results::result::FlowResult;
use vcc_traffic::agenda::Act;
use vcc_traffic::flow::CHUNK_BYTES;

/// Below the emulator, above everything else.
const REALTIME_PRIORITY: i32 = 40;
const LONGEST_SLEEP_NS: u64 = 10_000_000;

/// Connects all flows, lets them warm up, measures, and returns with every socket closed.
pub fn run(
    plan: &Plan,
    hosts: &Hosts,
    control: &Control,
    senders: &Senders,
) -> Result<Vec<FlowResult>> {
    let mut flows = open_all(plan, hosts)?;
    senders.announce(flows.iter().map(Flow::view).collect::<Result<_>>()?);
    // The emulator reports its own lack of this; one warning is enough.
    let _ = become_realtime(REALTIME_PRIORITY);
    Pump::new(&flows)?.run(&mut flows, plan, control)?;
    Ok(flows.into_iter().map(Flow::into_result).collect())
}

fn open_all(plan: &Plan, hosts: &Hosts) -> Result<Vec<Flow>> {
    let mut listeners: BTreeMap<SocketAddr, Socket> = BTreeMap::new();
    let mut flows = Vec::with_capacity(plan.flows.len());
    for (number, (spec, port)) in plan.flows.iter().zip(plan.ports()).enumerate() {
        let to = SocketAddr::new(hosts.address(spec.receiver), port);
        let listener = match listeners.entry(to) {
            Entry::Occupied(listener) => listener.into_mut(),
            Entry::Vacant(place) => {
                let guest = hosts.guest(spec.receiver);
                place.insert(guest.inside(|| socket::listen(to, &spec.congestion_control))?)
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
            epoll.add(flow.receiver_fd(), libc::EPOLLIN, flows.len() + number)?;
        }
        Ok(Self { epoll, scratch: vec![0; CHUNK_BYTES], ready: Vec::new() })
    }

    fn run(&mut self, flows: &mut [Flow], plan: &Plan, control: &Control) -> Result<()> {
        let begin_ns = now_ns();
        let start_ns = begin_ns + plan.warm_up_ns;
        control.set_window(Window { start_ns, end_ns: start_ns + plan.measured_ns });
        for (at_ns, act) in plan.agenda() {
            self.until(begin_ns + at_ns, flows, control)?;
            self.act(act, flows, now_ns().saturating_sub(start_ns) / 1000)?;
        }
        Ok(())
    }

    fn act(&self, act: Act, flows: &mut [Flow], at_us: u64) -> Result<()> {
        match act {
            Act::StartMeasuring => flows.iter_mut().try_for_each(Flow::start_measuring),
            Act::Bound => {
                flows.iter_mut().for_each(Flow::note_bound);
                Ok(())
            }
            Act::Join(number) => {
                flows[number].join();
                // Writable at once, so this also makes it begin.
                let interest = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET;
                self.epoll.add(flows[number].sender_fd(), interest, number)
            }
            Act::Leave(number) => {
                self.epoll.remove(flows[number].sender_fd())?;
                flows[number].leave()
            }
            Act::SampleWindows => flows.iter_mut().try_for_each(|flow| flow.sample(at_us)),
            Act::SampleReceived => {
                flows.iter_mut().for_each(|flow| flow.note_received(at_us));
                Ok(())
            }
            Act::Finish => flows.iter_mut().try_for_each(Flow::finish),
        }
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
                match token.checked_sub(flows.len()) {
                    None => flows[token].send(&mut self.scratch)?,
                    Some(number) => {
                        let flow = &mut flows[number];
                        if !flow.receive(&mut self.scratch)? {
                            self.epoll.remove(flow.receiver_fd())?;
                        }
                    }
                }
            }
        }
    }
}
