//! One flow with both its halves: a sender that has data for as long as it sends, a receiver that
//! checks and counts it.

use super::of_flow;
use super::route_cwnd;
use super::senders::SenderView;
use super::socket::{accept, connect};
use crate::backend::live::hosts::{Hosts, Proxy};
use crate::base::error::{Error, Result};
use crate::base::system::now_ns;
use crate::scenario::FlowSpec;
use socket2::Socket;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use vcc_results::result::FlowResult;
use vcc_traffic::flow::{Receiver, Sender};

pub(super) struct Flow {
    number: usize,
    sender: Sender,
    receiver: Receiver,
    _proxy: Option<Proxy>,
}

impl Flow {
    /// Connects and accepts. Nothing is sent yet: data of one flow would delay or lose the
    /// handshake of the next.
    pub fn open(
        number: usize,
        spec: &FlowSpec,
        hosts: &Hosts,
        listener: &Socket,
        to: SocketAddr,
        seed: u64,
    ) -> Result<Self> {
        let guest = hosts.guest(spec.sender);
        if spec.has_route_cwnd {
            route_cwnd::make_known(guest, listener, to, &spec.congestion_control)?;
        }
        let proxy = spec.is_proxied.then(|| hosts.start_proxy(spec.sender, to)).transpose()?;
        let to = proxy.as_ref().map_or(to, Proxy::address);
        let sender = guest.inside(|| connect(to, &spec.congestion_control))?;
        let receiver =
            Receiver::new(accept(listener)?, number, seed, spec.pattern).map_err(of_flow)?;
        let sender = Sender::new(sender, number, seed, spec.pattern).map_err(of_flow)?;
        if spec.leaves_at_ns.is_some() {
            sender.prepare_to_leave().map_err(of_flow)?;
        }
        Ok(Self { number, sender, receiver, _proxy: proxy })
    }

    pub fn sender_fd(&self) -> RawFd {
        self.sender.socket().as_raw_fd()
    }

    pub fn receiver_fd(&self) -> RawFd {
        self.receiver.socket().as_raw_fd()
    }

    pub fn join(&mut self) {
        self.sender.join();
    }

    /// Writes no more; what was written is still sent.
    pub fn leave(&mut self) -> Result<()> {
        self.sender.leave().map_err(of_flow)
    }

    /// Writes until the socket takes no more, or until there is an answer to wait for.
    pub fn send(&mut self, scratch: &mut [u8]) -> Result<()> {
        self.sender.send(scratch).map_err(of_flow)
    }

    /// Reads once and compares; false at the end of the stream.
    pub fn receive(&mut self, scratch: &mut [u8]) -> Result<bool> {
        if self.receiver.receive(scratch).map_err(of_flow)? {
            return Ok(true);
        }
        let has_all = self.receiver.received_bytes() == self.sender.sent_bytes();
        if self.sender.is_sending() || !has_all {
            let problem = "the receiver saw the end of the connection".into();
            return Err(Error::Traffic { flow: self.number, problem });
        }
        Ok(false)
    }

    pub fn start_measuring(&mut self) -> Result<()> {
        self.sender.start_measuring(now_ns()).map_err(of_flow)
    }

    /// Notes what has been received, at the start, the end, or between two phases.
    pub fn note_bound(&mut self) {
        self.receiver.note_bound();
    }

    pub fn note_received(&mut self, at_us: u64) {
        self.receiver.note_received(at_us);
    }

    pub fn sample(&mut self, at_us: u64) -> Result<()> {
        self.sender.sample(at_us).map_err(of_flow)
    }

    pub fn finish(&mut self) -> Result<()> {
        self.sender.finish().map_err(of_flow)
    }

    /// The sender's socket, for observers of its state.
    pub fn view(&self) -> Result<SenderView> {
        SenderView::from_socket(self.sender.socket())
    }

    pub fn into_result(self) -> FlowResult {
        FlowResult::from_halves(self.sender.into_half(), self.receiver.into_half())
    }
}
