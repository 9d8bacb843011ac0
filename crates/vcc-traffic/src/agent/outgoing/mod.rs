//! The flows that this guest sends. [`Outgoing`] is common to all kinds of them.

mod asking;
mod connecting;
mod introduction;
mod sending;
mod transferring;

use crate::poll::Poll;
use asking::Asking;
use sending::Sending;
use std::net::IpAddr;
use transferring::Transferring;
use vcc_traffic::plan::FlowToSend;
use vcc_traffic::report::SenderHalf;
use vcc_traffic::requests::Kind;
use vcc_traffic::{Error, Pattern, Result};

pub trait Outgoing {
    /// Called at the time when the flow connects.
    fn connect(&mut self, _: &Poll) -> Result<()> {
        Ok(())
    }

    /// Sends and receives until the socket would block.
    fn advance(&mut self, poll: &Poll, scratch: &mut [u8]) -> Result<()>;
    fn join(&mut self, poll: &Poll, scratch: &mut [u8]) -> Result<()>;
    fn leave(&mut self) -> Result<()>;

    /// Called at the time of the next transfer.
    fn let_transfer(&mut self, _: &Poll) -> Result<()> {
        Ok(())
    }

    /// The window of measurement begins.
    fn start_measuring(&mut self, _start_ns: u64) -> Result<()> {
        Ok(())
    }

    /// Queues a message of a worker; only flows of messages take one.
    fn post(&mut self, worker: usize, _bytes: u64) -> Result<()> {
        Err(Error::Plan(format!("has worker {worker} send over a flow that takes no messages")))
    }

    /// The workers whose messages have been answered since this was last called.
    fn take_answered(&mut self) -> Vec<usize> {
        Vec::new()
    }

    /// Begins a request; only flows of requests can, and one at a time.
    fn ask(&mut self, kind: usize, _: &Poll) -> Result<()> {
        Err(Error::Plan(format!("asks for kind {kind} over a flow that takes no requests")))
    }

    /// Whether the response has come since this was last called.
    fn take_response(&mut self) -> bool {
        false
    }

    /// A phase of the window of measurement begins, or the last one ends.
    fn note_bound(&mut self) {}

    fn sample(&mut self, _at_us: u64) -> Result<()> {
        Ok(())
    }

    /// The window of measurement ends.
    fn finish(&mut self) -> Result<()>;
    fn into_half(self: Box<Self>) -> Result<SenderHalf>;
}

/// The flow at this position of the plan; `from` is the guest's own address.
pub fn outgoing<'a>(
    plan: &'a FlowToSend,
    kinds: &'a [Kind],
    from: IpAddr,
    number: usize,
) -> Box<dyn Outgoing + 'a> {
    match plan.pattern {
        Pattern::Bulk | Pattern::PingPong | Pattern::Messages(_) | Pattern::Idle => {
            Box::new(Sending::new(plan, from, number))
        }
        Pattern::Requests(requests) => Box::new(Asking::new(plan, requests, kinds, from, number)),
        Pattern::Transfers(transfers) => Box::new(Transferring::new(plan, transfers, from, number)),
    }
}
