//! The flows that this guest receives, and its listeners.

use crate::draining::Draining;
use crate::poll::{Poll, Source};
use socket2::Socket;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use vcc_traffic::flow::{Answerer, Receiver, ResettableReceiver, Served};
use vcc_traffic::plan::{FlowToReceive, GuestPlan, introduction_port};
use vcc_traffic::report::ReceiverHalf;
use vcc_traffic::requests::Kind;
use vcc_traffic::{Connections, Doing, Error, Pattern, Result, socket};

pub struct Receiving<'a> {
    listeners: Vec<(u16, Socket)>,
    kinds: &'a [Kind],
    /// None: its connection has not been accepted yet.
    flows: Vec<(&'a FlowToReceive, Option<Half<'a>>)>,
    noted_bounds: usize,
}

enum Half<'a> {
    Bulk(Draining),
    Requests(Answerer<'a>),
    Resettable(ResettableReceiver),
    /// All others, which answer messages or end several times.
    Other(Receiver),
}

impl<'a> Receiving<'a> {
    pub fn open(plan: &'a GuestPlan, poll: &Poll) -> Result<Self> {
        let anywhere = match plan.network.address {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let mut listeners = Vec::with_capacity(plan.listeners.len());
        for (number, spec) in plan.listeners.iter().enumerate() {
            let at = SocketAddr::new(anywhere, spec.port);
            let listener = socket::listen(at, &spec.congestion_control)?;
            listener.set_nonblocking(true).doing(|| format!("listen at {at}"))?;
            poll.add(listener.as_raw_fd(), libc::EPOLLIN, Source::Listener(number))?;
            listeners.push((spec.port, listener));
        }
        let flows = plan.receives.iter().map(|flow| (flow, None)).collect();
        Ok(Self { listeners, kinds: &plan.requests.kinds, flows, noted_bounds: 0 })
    }

    /// Accepts all pending connections of a listener.
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
        let is_introduction = |(flow, _): &(&FlowToReceive, Option<Half>)| {
            let from_port = introduction_port(flow.from_port);
            flow.is_introduced && from.is_some_and(|from| from.port() == from_port)
        };
        if self.flows.iter().any(is_introduction) {
            return Ok(());
        }
        let is_of = |flow: &FlowToReceive, is_new: bool| match flow.pattern.has_many_connections() {
            // No other flow uses their port.
            true => flow.port == port,
            false => {
                let from_port = from.map(|from| from.port());
                is_new && flow.port == port && Some(flow.from_port) == from_port
            }
        };
        let mut flows = self.flows.iter_mut().enumerate();
        let Some((number, (flow, place))) =
            flows.find(|(_, (flow, receiver))| is_of(flow, receiver.is_none()))
        else {
            let from = from.map_or("nowhere".to_owned(), |from| from.to_string());
            return Err(Error::Plan(format!("knows no flow from {from} to port {port}")));
        };
        if flow.pattern == Pattern::Bulk {
            let mut draining = Draining::start(socket, flow)?;
            draining.note_bounds_before(self.noted_bounds);
            *place = Some(Half::Bulk(draining));
            return Ok(());
        }
        socket.set_nonblocking(true).doing(|| "receive a flow".into())?;
        if let Pattern::Requests(requests) = flow.pattern {
            let interest = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET;
            poll.add(socket.as_raw_fd(), interest, Source::Receiver(number))?;
            if place.is_none() {
                let closes = requests.connections == Connections::New;
                let mut answerer = Answerer::new(self.kinds, flow.flow, flow.seed, closes);
                (0..self.noted_bounds).for_each(|_| answerer.note_bound());
                *place = Some(Half::Requests(answerer));
            }
            let Some(Half::Requests(answerer)) = place else { return Ok(()) };
            return answerer.accepted(socket);
        }
        poll.add(socket.as_raw_fd(), libc::EPOLLIN, Source::Receiver(number))?;
        if let Pattern::Transfers(transfers) = flow.pattern
            && transfers.may_be_reset()
        {
            if place.is_none() {
                let mut receiver = ResettableReceiver::new(flow.flow, flow.seed, transfers);
                (0..self.noted_bounds).for_each(|_| receiver.note_bound());
                *place = Some(Half::Resettable(receiver));
            }
            let Some(Half::Resettable(receiver)) = place else { return Ok(()) };
            let from_port = from.map_or(0, |from| from.port());
            return receiver.accepted(socket, from_port.wrapping_sub(flow.from_port).into());
        }
        if let Some(Half::Other(receiver)) = place {
            return receiver.next_transfer(socket);
        }
        let mut receiver = Receiver::new(socket, flow.flow, flow.seed, flow.pattern)?;
        // Nothing had been received at the bounds before.
        (0..self.noted_bounds).for_each(|_| receiver.note_bound());
        *place = Some(Half::Other(receiver));
        Ok(())
    }

    /// Receives what has come of a flow. Requests are left to be answered.
    pub fn receive(&mut self, number: usize, poll: &Poll, scratch: &mut [u8]) -> Result<Served> {
        let receiver = match &mut self.flows[number].1 {
            Some(Half::Requests(answerer)) => return answerer.advance(scratch),
            Some(Half::Other(receiver)) => receiver,
            Some(Half::Resettable(receiver)) => {
                return receiver.receive(scratch).map(|()| Served::default());
            }
            Some(Half::Bulk(_)) | None => return Ok(Served::default()),
        };
        if !receiver.receive(scratch)? {
            // Otherwise its socket would stay ready.
            poll.remove(receiver.socket().as_raw_fd())?;
            receiver.answer_end()?;
        }
        Ok(Served::default())
    }

    /// Responds to a request that has come over this flow.
    pub fn respond(&mut self, number: usize, kind: usize, scratch: &mut [u8]) -> Result<Served> {
        let Some(Half::Requests(answerer)) = &mut self.flows[number].1 else {
            return Ok(Served::default());
        };
        answerer.respond(kind);
        answerer.advance(scratch)
    }

    pub fn note_bound(&mut self) -> Result<()> {
        self.noted_bounds += 1;
        self.halves().try_for_each(|half| match half {
            Half::Bulk(draining) => draining.note_bound(),
            Half::Requests(answerer) => {
                answerer.note_bound();
                Ok(())
            }
            Half::Resettable(receiver) => {
                receiver.note_bound();
                Ok(())
            }
            Half::Other(receiver) => {
                receiver.note_bound();
                Ok(())
            }
        })
    }

    pub fn note_received(&mut self, at_us: u64) -> Result<()> {
        self.halves().try_for_each(|half| match half {
            Half::Bulk(draining) => draining.note_received(at_us),
            Half::Requests(answerer) => {
                answerer.note_received(at_us);
                Ok(())
            }
            Half::Resettable(receiver) => {
                receiver.note_received(at_us);
                Ok(())
            }
            Half::Other(receiver) => {
                receiver.note_received(at_us);
                Ok(())
            }
        })
    }

    /// The measurement window has ended.
    pub fn finish(&mut self) -> Result<()> {
        self.halves().try_for_each(|half| match half {
            Half::Bulk(draining) => draining.finish(),
            Half::Requests(_) | Half::Resettable(_) | Half::Other(_) => Ok(()),
        })
    }

    fn halves(&mut self) -> impl Iterator<Item = &mut Half<'a>> {
        self.flows.iter_mut().filter_map(|(_, half)| half.as_mut())
    }

    pub fn into_halves(self) -> Result<Vec<ReceiverHalf>> {
        let half = |(flow, half): (&FlowToReceive, Option<Half>)| match half {
            Some(Half::Bulk(draining)) => Ok(draining.into_half()),
            Some(Half::Requests(answerer)) => Ok(answerer.into_half()),
            Some(Half::Resettable(receiver)) => Ok(receiver.into_half()),
            Some(Half::Other(receiver)) => Ok(receiver.into_half()),
            None => {
                let FlowToReceive { flow, port, from_port, .. } = *flow;
                let problem = format!("nobody connected from port {from_port} to port {port}");
                Err(Error::Flow { flow, problem })
            }
        };
        self.flows.into_iter().map(half).collect()
    }
}
