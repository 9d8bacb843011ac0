//! A flow over one connection.

use super::Outgoing;
use super::connecting::{connect, is_connected};
use super::introduction::Introduction;
use crate::poll::Poll;
use socket2::Socket;
use std::net::IpAddr;
use vcc_traffic::flow::Sender;
use vcc_traffic::plan::{FlowToSend, introduction_port};
use vcc_traffic::report::SenderHalf;
use vcc_traffic::{Error, Result};

pub struct Sending<'a> {
    plan: &'a FlowToSend,
    from: IpAddr,
    /// The flow's position in the plan.
    number: usize,
    connection: Connection,
    has_joined: bool,
    /// The start of the measurement window, once it has begun.
    measures_since_ns: Option<u64>,
    has_left: bool,
    has_ended: bool,
}

enum Connection {
    None,
    /// The flow's own connection waits for the end of this one.
    Introduced(Introduction),
    Connecting(Socket),
    Connected(Box<Sender>),
}

impl<'a> Sending<'a> {
    pub fn new(plan: &'a FlowToSend, from: IpAddr, number: usize) -> Self {
        Self {
            plan,
            from,
            number,
            connection: Connection::None,
            has_joined: false,
            measures_since_ns: None,
            has_left: false,
            has_ended: false,
        }
    }

    /// Begins to connect.
    fn connect_from(&self, from_port: u16, poll: &Poll) -> Result<Socket> {
        connect(self.plan, self.from, from_port, poll, self.number)
    }

    fn begin(&mut self) -> Result<()> {
        let connecting = std::mem::replace(&mut self.connection, Connection::None);
        let Connection::Connecting(socket) = connecting else { return Ok(()) };
        let mut sender = Sender::new(socket, self.plan.flow, self.plan.seed, self.plan.pattern)?;
        if self.plan.leaves_at_ns.is_some() {
            sender.prepare_to_leave()?;
        }
        if self.has_joined {
            sender.join();
        }
        if let Some(start_ns) = self.measures_since_ns {
            sender.start_measuring(start_ns)?;
        }
        self.connection = Connection::Connected(Box::new(sender));
        Ok(())
    }

    fn unconnected(&self, when: &str) -> Error {
        let FlowToSend { flow, to, from_port, .. } = *self.plan;
        let problem = format!("there is no connection from port {from_port} to {to} {when}");
        Error::Flow { flow, problem }
    }
}

impl Outgoing for Sending<'_> {
    fn connect(&mut self, poll: &Poll) -> Result<()> {
        let from_port = self.plan.from_port;
        self.connection = if self.plan.cwnd_clamp_segs.is_some() {
            let socket = self.connect_from(introduction_port(from_port), poll)?;
            Connection::Introduced(Introduction::begin(socket)?)
        } else {
            Connection::Connecting(self.connect_from(from_port, poll)?)
        };
        Ok(())
    }

    fn advance(&mut self, poll: &Poll, scratch: &mut [u8]) -> Result<()> {
        if let Connection::Introduced(introduction) = &mut self.connection {
            if introduction.advance()? {
                self.connection =
                    Connection::Connecting(self.connect_from(self.plan.from_port, poll)?);
            }
            return Ok(());
        }
        if let Connection::Connecting(socket) = &self.connection {
            if !is_connected(socket, self.plan)? {
                return Ok(());
            }
            self.begin()?;
        }
        let Connection::Connected(sender) = &mut self.connection else { return Ok(()) };
        if !self.has_left {
            return sender.send(scratch);
        }
        if !self.has_ended {
            self.has_ended = sender.take_end(scratch)?;
        }
        Ok(())
    }

    fn join(&mut self, _: &Poll, scratch: &mut [u8]) -> Result<()> {
        self.has_joined = true;
        if let Connection::Connected(sender) = &mut self.connection {
            sender.join();
            sender.send(scratch)?;
        }
        Ok(())
    }

    fn leave(&mut self) -> Result<()> {
        self.has_left = true;
        match &mut self.connection {
            Connection::Connected(sender) => sender.leave(),
            _ => Err(self.unconnected("when it is to end")),
        }
    }

    fn start_measuring(&mut self, start_ns: u64) -> Result<()> {
        self.measures_since_ns = Some(start_ns);
        match &mut self.connection {
            Connection::Connected(sender) => sender.start_measuring(start_ns),
            _ => Ok(()),
        }
    }

    fn post(&mut self, worker: usize, bytes: u64) -> Result<()> {
        match &mut self.connection {
            Connection::Connected(sender) => sender.post(worker, bytes),
            _ => Err(self.unconnected("when a message is to go over it")),
        }
    }

    fn take_answered(&mut self) -> Vec<usize> {
        match &mut self.connection {
            Connection::Connected(sender) => sender.take_answered(),
            _ => Vec::new(),
        }
    }

    fn sample(&mut self, at_us: u64) -> Result<()> {
        match &mut self.connection {
            Connection::Connected(sender) => sender.sample(at_us),
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<()> {
        match &mut self.connection {
            Connection::Connected(sender) => sender.finish(),
            _ => Err(self.unconnected("at the end of the measurement window")),
        }
    }

    fn into_half(self: Box<Self>) -> Result<SenderHalf> {
        match self.connection {
            Connection::Connected(sender) => Ok(sender.into_half()),
            _ => Err(self.unconnected("at the end")),
        }
    }
}
