//! Serves the guest behind an existing device, between two wires.

use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

use vcc_domain::Port;

use crate::card::Card;
use crate::event::OnEvent;
use crate::listener::Error;
use crate::relay::Relay;
use crate::turns::Turns;
use crate::wake::Timer;
use crate::watch::{Source, Watch};
use crate::wire::Wire;

/// More than the wires' queues have frames, in batches.
const LAST_TURNS: usize = 256;

/// A guest's port between two wires.
pub struct RelayServer {
    device: String,
    watch: Watch,
    timer: Timer,
    /// More was left of the last turn, or there was none.
    is_busy: bool,
    relay: Arc<Turns<Relay>>,
    card: Card,
}

impl RelayServer {
    /// `device` is the name of the guest's device. What the guest sends is read from `guest`, and what
    /// comes for it from `fabric`. No treatment of the port may have a `receive` other than by the guest.
    ///
    /// # Errors
    /// This host does not let us wait.
    pub fn new(
        device: &str,
        port: Port,
        guest: Box<dyn Wire>,
        fabric: Box<dyn Wire>,
        on_event: OnEvent,
    ) -> Result<Self, Error> {
        let (watch, timer) = (Watch::new()?, Timer::new()?);
        watch.add(guest.as_raw_fd(), Source::Wire)?;
        watch.add(fabric.as_raw_fd(), Source::Wire)?;
        watch.add(timer.as_raw_fd(), Source::Timer)?;
        let relay = Arc::new(Turns::new(Relay::new(port, guest, fabric, on_event)));
        let card = Card::new(relay.clone(), Path::new(""));
        // The port may have deadlines already.
        let is_busy = true;
        Ok(RelayServer { device: device.to_owned(), watch, timer, is_busy, relay, card })
    }

    pub fn card(&self) -> Card {
        self.card.clone()
    }

    /// Serves until `stop` is readable. [`Self::end`] is to follow, once the wires get no more frames.
    ///
    /// # Errors
    /// `gone` is readable, because the device has gone; a wire was removed; or this host does not let
    /// us wait.
    pub fn run(&mut self, stop: &impl AsRawFd, gone: &impl AsRawFd) -> Result<(), Error> {
        self.watch.add(stop.as_raw_fd(), Source::Stop)?;
        self.watch.add(gone.as_raw_fd(), Source::Gone)?;
        while self.step()? {}
        Ok(())
    }

    /// Carries what the wires still have, and ends the connections whose promises are not kept yet.
    pub fn end(&mut self) {
        let mut relay = self.relay.lock();
        for _ in 0..LAST_TURNS {
            if !relay.turn() {
                break;
            }
        }
        relay.end();
    }

    /// Waits for work, and does a batch of it. False if it is to stop.
    fn step(&mut self) -> Result<bool, Error> {
        let sources = self.watch.wait(self.is_busy)?;
        if sources.contains(&Source::Stop) {
            return Ok(false);
        }
        if sources.contains(&Source::Gone) {
            return Err(Error::DeviceGone(self.device.clone()));
        }
        let mut relay = self.relay.lock();
        self.is_busy = relay.turn();
        if relay.is_wire_gone() || sources.contains(&Source::WireGone) {
            return Err(Error::DetourGone(self.device.clone()));
        }
        self.timer.set(relay.next_deadline_ns())?;
        Ok(true)
    }
}
