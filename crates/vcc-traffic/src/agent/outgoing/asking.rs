//! A flow of requests, over one connection or over one for each.

use super::Outgoing;
use super::connecting::{connect, is_connected};
use crate::poll::Poll;
use socket2::Socket;
use std::net::IpAddr;
use vcc_traffic::flow::Asker;
use vcc_traffic::plan::FlowToSend;
use vcc_traffic::report::SenderHalf;
use vcc_traffic::requests::Kind;
use vcc_traffic::{Connections, Requests, Result};

/// The kernel chooses a port for each connection. The receiver knows the flow by its listener's
/// port.
const ANY_PORT: u16 = 0;

pub struct Asking<'a> {
    plan: &'a FlowToSend,
    requests: Requests,
    from: IpAddr,
    /// The flow's position in the plan.
    number: usize,
    asker: Asker<'a>,
    /// Its handshake has not ended.
    connecting: Option<Socket>,
    /// Since the last call of [`Outgoing::take_response`].
    has_response: bool,
}

impl<'a> Asking<'a> {
    pub fn new(
        plan: &'a FlowToSend,
        requests: Requests,
        kinds: &'a [Kind],
        from: IpAddr,
        number: usize,
    ) -> Self {
        let asker = Asker::new(kinds, plan.flow, plan.seed);
        Self { plan, requests, from, number, asker, connecting: None, has_response: false }
    }

    fn connects_anew(&self) -> bool {
        self.requests.connections == Connections::New
    }

    fn connect_from(&mut self, from_port: u16, poll: &Poll) -> Result<()> {
        self.connecting = Some(connect(self.plan, self.from, from_port, poll, self.number)?);
        Ok(())
    }
}

impl Outgoing for Asking<'_> {
    fn connect(&mut self, poll: &Poll) -> Result<()> {
        if self.connects_anew() {
            return Ok(());
        }
        self.connect_from(self.plan.from_port, poll)
    }

    fn ask(&mut self, kind: usize, poll: &Poll) -> Result<()> {
        self.asker.ask(kind)?;
        if self.connects_anew() {
            return self.connect_from(ANY_PORT, poll);
        }
        Ok(())
    }

    fn advance(&mut self, _: &Poll, scratch: &mut [u8]) -> Result<()> {
        if let Some(socket) = &self.connecting {
            if !is_connected(socket, self.plan)? {
                return Ok(());
            }
        }
        if let Some(socket) = self.connecting.take() {
            self.asker.connected(socket)?;
        }
        if self.asker.advance(scratch)? {
            self.has_response = true;
            if self.connects_anew() {
                self.asker.close()?;
            }
        }
        Ok(())
    }

    fn take_response(&mut self) -> bool {
        std::mem::take(&mut self.has_response)
    }

    fn join(&mut self, _: &Poll, _: &mut [u8]) -> Result<()> {
        Ok(())
    }

    /// What has been asked for still gets its response.
    fn leave(&mut self) -> Result<()> {
        Ok(())
    }

    fn start_measuring(&mut self, start_ns: u64) -> Result<()> {
        self.asker.start_measuring(start_ns)
    }

    fn note_bound(&mut self) {
        self.asker.note_bound();
    }

    fn finish(&mut self) -> Result<()> {
        self.asker.finish(u64::from(self.requests.timeout_ms.get()) * 1_000_000)
    }

    fn into_half(self: Box<Self>) -> Result<SenderHalf> {
        Ok(self.asker.into_half())
    }
}
