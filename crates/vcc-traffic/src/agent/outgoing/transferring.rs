//! A flow of transfers, each over a connection of its own.

use super::Outgoing;
use super::connecting::{connect, is_connected};
use super::introduction::Introduction;
use crate::poll::Poll;
use socket2::Socket;
use std::net::IpAddr;
use vcc_traffic::flow::TransferSender;
use vcc_traffic::plan::{FlowToSend, introduction_port};
use vcc_traffic::report::SenderHalf;
use vcc_traffic::{Result, Transfers};

/// The kernel chooses a port for each connection. The receiver knows the flow by its listener's
/// port, and the transfer by its turn: where that may fail, by the port after all.
const ANY_PORT: u16 = 0;

pub struct Transferring<'a> {
    plan: &'a FlowToSend,
    from: IpAddr,
    /// The flow's position in the plan.
    number: usize,
    sender: TransferSender,
    /// The first transfer waits for its end.
    introduction: Option<Introduction>,
    /// Its handshake has not ended.
    connecting: Option<Socket>,
    is_under_way: bool,
    has_joined: bool,
    /// The number of further transfers that may begin now.
    let_transfers: u32,
    has_left: bool,
    transfers: Transfers,
    begun: u16,
}

impl<'a> Transferring<'a> {
    pub fn new(plan: &'a FlowToSend, transfers: Transfers, from: IpAddr, number: usize) -> Self {
        let sender = TransferSender::new(transfers, plan.flow, plan.seed);
        Self {
            plan,
            from,
            number,
            sender,
            introduction: None,
            connecting: None,
            is_under_way: false,
            has_joined: false,
            // The first begins when the flow joins.
            let_transfers: transfers.every_ms.map_or(transfers.count.get(), |_| 1),
            has_left: false,
            transfers,
            begun: 0,
        }
    }

    /// Begins the next transfer, if there may be one.
    fn begin(&mut self, poll: &Poll) -> Result<()> {
        let is_waiting = self.is_under_way || self.introduction.is_some();
        if is_waiting || self.let_transfers == 0 || self.has_left || self.sender.was_last() {
            return Ok(());
        }
        self.is_under_way = true;
        self.let_transfers -= 1;
        self.sender.begin();
        let is_numbered = self.transfers.may_be_reset();
        let port = if is_numbered { self.plan.from_port + self.begun } else { ANY_PORT };
        self.begun += 1;
        self.connecting = Some(connect(self.plan, self.from, port, poll, self.number)?);
        Ok(())
    }
}

impl Outgoing for Transferring<'_> {
    fn connect(&mut self, poll: &Poll) -> Result<()> {
        if self.plan.cwnd_clamp_segs.is_some() {
            let port = introduction_port(self.plan.from_port);
            let socket = connect(self.plan, self.from, port, poll, self.number)?;
            self.introduction = Some(Introduction::begin(socket)?);
        }
        Ok(())
    }

    fn advance(&mut self, poll: &Poll, scratch: &mut [u8]) -> Result<()> {
        if let Some(introduction) = &mut self.introduction {
            if introduction.advance()? {
                self.introduction = None;
                if self.has_joined {
                    self.begin(poll)?;
                }
            }
            return Ok(());
        }
        if let Some(socket) = &self.connecting {
            if !is_connected(socket, self.plan)? {
                return Ok(());
            }
        }
        if let Some(socket) = self.connecting.take() {
            self.sender.connected(socket)?;
        }
        if self.sender.advance(scratch)? {
            self.is_under_way = false;
            self.begin(poll)?;
        }
        Ok(())
    }

    fn join(&mut self, poll: &Poll, _: &mut [u8]) -> Result<()> {
        self.has_joined = true;
        self.begin(poll)
    }

    fn let_transfer(&mut self, poll: &Poll) -> Result<()> {
        self.let_transfers += 1;
        self.begin(poll)
    }

    /// A transfer that is under way is completed.
    fn leave(&mut self) -> Result<()> {
        self.has_left = true;
        Ok(())
    }

    /// A transfer that is under way at the end of the window does not count.
    fn finish(&mut self) -> Result<()> {
        self.leave()
    }

    fn into_half(self: Box<Self>) -> Result<SenderHalf> {
        self.sender.into_half()
    }
}
