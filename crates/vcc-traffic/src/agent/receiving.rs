//! The flows that this guest receives, and the listeners where they come.

use crate::draining::Draining;
use crate::poll::{Poll, Source};
use socket2::Socket;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::AsRawFd;
use vcc_traffic::flow::Receiver;
use vcc_traffic::plan::{FlowToReceive, GuestPlan};
use vcc_traffic::report::ReceiverHalf;
use vcc_traffic::{Doing, Error, Pattern, Result, socket};

pub struct Receiving<'a> {
    listeners: Vec<(u16, Socket)>,
    /// Those without a connection are still to come.
    flows: Vec<(&'a FlowToReceive, Option<Half>)>,
    noted_bounds: usize,
}

enum Half {
    Bulk(Draining),
    /// It answers each part that comes.
    PingPong(Receiver),
}

impl<'a> Receiving<'a> {
    pub fn open(plan: &'a GuestPlan, poll: &Poll) -> Result<Self> {
        let mut listeners = Vec::with_capacity(plan.listeners.len());
        for (number, spec) in plan.listeners.iter().enumerate() {
            let at = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, spec.port);
            let listener = socket::listen(at.into(), &spec.congestion_control)?;
            listener.set_nonblocking(true).doing(|| format!("listen at {at}"))?;
            poll.add(listener.as_raw_fd(), libc::EPOLLIN, Source::Listener(number))?;
            listeners.push((spec.port, listener));
        }
        let flows = plan.receives.iter().map(|flow| (flow, None)).collect();
        Ok(Self { listeners, flows, noted_bounds: 0 })
    }

    /// Takes all connections that a listener has.
    pub fn accept(&mut self, listener: usize, poll: &Poll) -> Result<()> {
        loop {
            let (port, socket) = &self.listeners[listener];
            let doing = || format!("accept a connection to port {port}");
            match socket.accept() {
                Ok((socket, from)) => {
                    self.begin(socket, *port, from.as_socket(), poll)?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).doing(doing),
            }
        }
    }

    fn begin(
        &mut self,
        socket: Socket,
        port: u16,
        from: Option<SocketAddr>,
        poll: &Poll,
    ) -> Result<()> {
        let is_awaited = |(flow, half): &&mut (&FlowToReceive, Option<Half>)| {
            let from_port = from.map(|from| from.port());
            half.is_none() && flow.port == port && Some(flow.from_port) == from_port
        };
        let mut flows = self.flows.iter_mut().enumerate();
        let Some((number, (flow, place))) = flows.find(|(_, flow)| is_awaited(flow)) else {
            let from = from.map_or("nowhere".to_owned(), |from| from.to_string());
            return Err(Error::Plan(format!("knows no flow from {from} to port {port}")));
        };
        let half = match flow.pattern {
            Pattern::Bulk => {
                let mut draining = Draining::start(socket, flow)?;
                draining.note_bounds_before(self.noted_bounds);
                Half::Bulk(draining)
            }
            Pattern::PingPong => {
                socket.set_nonblocking(true).doing(|| "receive a flow".into())?;
                let mut receiver = Receiver::new(socket, flow.flow, flow.seed, flow.pattern)?;
                // Nothing had come of it at those.
                (0..self.noted_bounds).for_each(|_| receiver.note_bound());
                poll.add(receiver.socket().as_raw_fd(), libc::EPOLLIN, Source::Receiver(number))?;
                Half::PingPong(receiver)
            }
        };
        *place = Some(half);
        Ok(())
    }

    pub fn receive(&mut self, number: usize, poll: &Poll, scratch: &mut [u8]) -> Result<()> {
        let Some(Half::PingPong(receiver)) = &mut self.flows[number].1 else { return Ok(()) };
        if !receiver.receive(scratch)? {
            // Its socket would be ready for ever.
            poll.remove(receiver.socket().as_raw_fd())?;
            receiver.answer_end()?;
        }
        Ok(())
    }

    pub fn note_bound(&mut self) -> Result<()> {
        self.noted_bounds += 1;
        self.halves().try_for_each(|half| match half {
            Half::Bulk(draining) => draining.note_bound(),
            Half::PingPong(receiver) => {
                receiver.note_bound();
                Ok(())
            }
        })
    }

    pub fn note_received(&mut self, at_us: u64) -> Result<()> {
        self.halves().try_for_each(|half| match half {
            Half::Bulk(draining) => draining.note_received(at_us),
            Half::PingPong(receiver) => {
                receiver.note_received(at_us);
                Ok(())
            }
        })
    }

    /// The window of measurement ends.
    pub fn finish(&mut self) -> Result<()> {
        self.halves().try_for_each(|half| match half {
            Half::Bulk(draining) => draining.finish(),
            Half::PingPong(_) => Ok(()),
        })
    }

    fn halves(&mut self) -> impl Iterator<Item = &mut Half> {
        self.flows.iter_mut().filter_map(|(_, half)| half.as_mut())
    }

    pub fn into_halves(self) -> Result<Vec<ReceiverHalf>> {
        let half = |(flow, half): (&FlowToReceive, Option<Half>)| match half {
            Some(Half::Bulk(draining)) => Ok(draining.into_half()),
            Some(Half::PingPong(receiver)) => Ok(receiver.into_half()),
            None => {
                let FlowToReceive { flow, port, from_port, .. } = *flow;
                let problem = format!("nobody connected from port {from_port} to port {port}");
                Err(Error::Flow { flow, problem })
            }
        };
        self.flows.into_iter().map(half).collect()
    }
}
