//! One flow that this guest sends, from its connection to its end.

use crate::introduction::Introduction;
use crate::poll::{Poll, Source};
use socket2::{SockAddr, Socket};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use vcc_traffic::flow::Sender;
use vcc_traffic::plan::{FlowToSend, introduction_port};
use vcc_traffic::report::SenderHalf;
use vcc_traffic::{Doing, Error, Result, socket};

pub struct Sending<'a> {
    plan: &'a FlowToSend,
    connection: Connection,
    has_joined: bool,
    /// Once the window of measurement has begun: when.
    measures_since_ns: Option<u64>,
    has_left: bool,
    has_ended: bool,
}

/// Where a flow begins, and how its socket is watched.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub address: IpAddr,
    pub poll: &'a Poll,
    /// Of the flow, in the plan.
    pub number: usize,
}

enum Connection {
    None,
    /// What the flow's own waits for.
    Introduced(Introduction),
    Asked(Socket),
    Made(Box<Sender>),
}

impl<'a> Sending<'a> {
    pub fn new(plan: &'a FlowToSend) -> Self {
        Self {
            plan,
            connection: Connection::None,
            has_joined: false,
            measures_since_ns: None,
            has_left: false,
            has_ended: false,
        }
    }

    /// Sends the SYN.
    pub fn connect(&mut self, place: Place) -> Result<()> {
        let from_port = self.plan.from_port;
        self.connection = if self.plan.cwnd_clamp_segs.is_some() {
            let socket = self.open(introduction_port(from_port), place)?;
            Connection::Introduced(Introduction::begin(socket)?)
        } else {
            Connection::Asked(self.open(from_port, place)?)
        };
        Ok(())
    }

    /// A socket that is connecting.
    fn open(&self, from_port: u16, place: Place) -> Result<Socket> {
        let to = self.plan.to;
        let from = SocketAddr::new(place.address, from_port);
        let doing = || format!("connect from {from} to {to}");
        let socket = socket::tcp(to, &self.plan.congestion_control)?;
        socket.set_reuse_address(true).doing(doing)?;
        socket.set_nonblocking(true).doing(doing)?;
        socket.bind(&SockAddr::from(from)).doing(doing)?;
        match socket.connect(&SockAddr::from(to)) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => {
                return Err(error).doing(doing);
            }
            Ok(()) | Err(_) => {}
        }
        let interest = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET;
        place.poll.add(socket.as_raw_fd(), interest, Source::Sender(place.number))?;
        Ok(socket)
    }

    /// Does what its socket lets it do by now.
    pub fn advance(&mut self, place: Place, scratch: &mut [u8]) -> Result<()> {
        if let Connection::Introduced(introduction) = &mut self.connection {
            if introduction.advance()? {
                self.connection = Connection::Asked(self.open(self.plan.from_port, place)?);
            }
            return Ok(());
        }
        if let Connection::Asked(socket) = &self.connection {
            if !is_connected(socket, self.plan)? {
                return Ok(());
            }
            self.begin()?;
        }
        let Connection::Made(sender) = &mut self.connection else { return Ok(()) };
        if !self.has_left {
            return sender.send(scratch);
        }
        if !self.has_ended {
            self.has_ended = sender.take_end(scratch)?;
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<()> {
        let asked = std::mem::replace(&mut self.connection, Connection::None);
        let Connection::Asked(socket) = asked else { return Ok(()) };
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
        self.connection = Connection::Made(Box::new(sender));
        Ok(())
    }

    pub fn join(&mut self, scratch: &mut [u8]) -> Result<()> {
        self.has_joined = true;
        if let Connection::Made(sender) = &mut self.connection {
            sender.join();
            sender.send(scratch)?;
        }
        Ok(())
    }

    pub fn leave(&mut self) -> Result<()> {
        self.has_left = true;
        match &mut self.connection {
            Connection::Made(sender) => sender.leave(),
            _ => Err(self.unconnected("when it is to end")),
        }
    }

    pub fn start_measuring(&mut self, start_ns: u64) -> Result<()> {
        self.measures_since_ns = Some(start_ns);
        match &mut self.connection {
            Connection::Made(sender) => sender.start_measuring(start_ns),
            _ => Ok(()),
        }
    }

    pub fn sample(&mut self, at_us: u64) -> Result<()> {
        match &mut self.connection {
            Connection::Made(sender) => sender.sample(at_us),
            _ => Ok(()),
        }
    }

    pub fn finish(&mut self) -> Result<()> {
        match &mut self.connection {
            Connection::Made(sender) => sender.finish(),
            _ => Err(self.unconnected("by the end of the window of measurement")),
        }
    }

    pub fn into_half(self) -> Result<SenderHalf> {
        match self.connection {
            Connection::Made(sender) => Ok(sender.into_half()),
            _ => Err(self.unconnected("at the end")),
        }
    }

    fn unconnected(&self, when: &str) -> Error {
        let FlowToSend { flow, to, from_port, .. } = *self.plan;
        let problem = format!("there is no connection from port {from_port} to {to} {when}");
        Error::Flow { flow, problem }
    }
}

/// Whether the handshake is over.
fn is_connected(socket: &Socket, plan: &FlowToSend) -> Result<bool> {
    let doing = || format!("connect from port {} to {}", plan.from_port, plan.to);
    if let Some(error) = socket.take_error().doing(doing)? {
        return Err(error).doing(doing);
    }
    match socket.peer_addr() {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => Ok(false),
        Err(error) => Err(error).doing(doing),
    }
}
