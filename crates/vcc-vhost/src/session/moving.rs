//! A front end that moves its guest to another host: the log of what the card writes to the guest's
//! memory, and the card's state.

use std::os::fd::OwnedFd;

use vcc_net::vhost_user::protocol_feature::{DEVICE_STATE, LOG_SHMFD};
use vcc_net::vhost_user::{End, Message};
use vcc_net::virtio::feature;

use super::Session;
use crate::device::Device;
use crate::dirty::GuestMemory;
use crate::event::Event;
use crate::features::Features;
use crate::ring::Ring;
use crate::transfer::{Direction, Transfer};
use crate::watch::Watch;

/// The answer to VHOST_USER_SET_DEVICE_STATE_FD: no descriptor of the card's comes with it.
const NO_FD: u64 = 1 << 8;
/// VHOST_TRANSFER_STATE_*.
const SAVE: u32 = 0;
const LOAD: u32 = 1;
const STOPPED: u32 = 0;
const FAILED: u64 = 1;

impl Session {
    /// A log is offered to front ends that take the state alone: without it, guests would move
    /// without their connections.
    pub(super) fn offered(&self) -> Features {
        match self.protocol & (LOG_SHMFD | DEVICE_STATE) == LOG_SHMFD | DEVICE_STATE {
            true => Features(Features::OFFERED.0 | feature::LOG_ALL),
            false => Features::OFFERED,
        }
    }

    /// Has the guest moved away? Its rings stop before it runs elsewhere. A front end that dies during the copy does
    /// not stop them.
    pub(crate) fn has_moved(&self) -> bool {
        self.is_logging() && !self.rings.iter().any(Ring::is_started)
    }

    /// Does the front end copy the guest's memory while the guest runs?
    pub(crate) fn is_logging(&self) -> bool {
        self.features.has(feature::LOG_ALL)
    }

    /// The guest's memory, and the rings that are served. A front end may start rings before it shares the log:
    /// what is written until then would be missing elsewhere.
    pub(crate) fn served(&mut self) -> (&GuestMemory, &mut [Ring]) {
        let awaits_log = self.is_logging() && self.log.is_none();
        (&self.memory.guest, if awaits_log { &mut [] } else { &mut self.rings })
    }

    /// A front end that has stopped all rings shares a new log with the next ones: the one before is not read any
    /// more.
    pub(super) fn forget_log_of_stopped(&mut self) {
        if !self.rings.iter().any(Ring::is_started) {
            self.log = None;
        }
    }

    pub(super) fn log_writes(&mut self) -> Result<(), End> {
        let log = self.log.clone().filter(|_| self.is_logging());
        self.memory.log_to(log.as_ref())
    }

    /// VHOST_USER_SET_DEVICE_STATE_FD. Returns the answer.
    ///
    /// # Errors
    /// The message is invalid.
    pub(super) fn begin_transfer(
        &mut self,
        message: &Message,
        fd: Option<OwnedFd>,
        device: &mut Device,
        watch: &Watch,
    ) -> Result<u64, End> {
        let (direction, phase) = (message.word(0)?, message.word(1)?);
        let fd = fd.ok_or_else(|| End::refused("a card's state without a descriptor"))?;
        self.close_pipe(watch);
        let begun = match (direction, phase) {
            _ if self.rings.iter().any(Ring::is_started) => {
                Err("the guest's rings have not been stopped".to_owned())
            }
            (SAVE, STOPPED) => {
                Transfer::save(fd, device.leaves()).map_err(|error| error.to_string())
            }
            (LOAD, STOPPED) => {
                Transfer::load(fd, device.state_limit_bytes()).map_err(|error| error.to_string())
            }
            _ => Err(format!("direction {direction} in phase {phase} is unknown")),
        };
        let begun = begun.and_then(|mut transfer| match transfer.begin(watch) {
            Ok(()) => Ok(transfer),
            Err(error) => {
                transfer.close(watch);
                Err(error.to_string())
            }
        });
        match begun {
            Ok(transfer) => {
                self.transfer = Some(transfer);
                Ok(NO_FD)
            }
            Err(why) => {
                device.report(Event::StateRefused(why));
                Ok(NO_FD | FAILED)
            }
        }
    }

    /// Carries what the pipe takes or has now. After an error, the front end's question is answered
    /// by one.
    pub(crate) fn carry(&mut self, device: &mut Device, watch: &Watch) {
        let Some(transfer) = &mut self.transfer else { return };
        if let Err(error) = transfer.carry(watch) {
            self.transfer = None;
            device.report(Event::StateRefused(error.to_string()));
        }
    }

    /// VHOST_USER_CHECK_DEVICE_STATE: has the state come whole, and is it used? Returns the answer.
    pub(super) fn end_transfer(&mut self, device: &mut Device, watch: &Watch) -> u64 {
        let Some(mut transfer) = self.transfer.take() else { return FAILED };
        let carried = transfer.carry(watch);
        transfer.close(watch);
        let ended = match (carried, transfer.direction) {
            (Err(error), _) => Err(error.to_string()),
            (Ok(false), _) => Err("the front end asks for its end before it is over".to_owned()),
            (Ok(true), Direction::Save) => {
                device.is_taken();
                Ok(())
            }
            (Ok(true), Direction::Load) => device.comes(&transfer.into_bytes()),
        };
        match ended {
            Ok(()) => 0,
            Err(why) => {
                device.report(Event::StateRefused(why));
                FAILED
            }
        }
    }

    pub(super) fn close_pipe(&mut self, watch: &Watch) {
        if let Some(mut transfer) = self.transfer.take() {
            transfer.close(watch);
        }
    }
}
