//! A front end's session: it shares the guest's memory and names the places of the rings.

mod moving;

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use vcc_net::vhost_user::{Connection, End, Message, Request, protocol_feature};
use vcc_net::virtio::feature;

use crate::device::{Device, PAIRS_MAX};
use crate::dirty::Log;
use crate::event::Event;
use crate::features::Features;
use crate::memory::Memory;
use crate::ring::Ring;
use crate::transfer::Transfer;
use crate::watch::{Source, Watch};

const PROTOCOL_FEATURES: u64 = protocol_feature::MQ
    | protocol_feature::LOG_SHMFD
    | protocol_feature::RARP
    | protocol_feature::REPLY_ACK
    | protocol_feature::RESET_DEVICE
    | protocol_feature::DEVICE_STATE;
/// A ring's message without a descriptor.
const NO_FD: u64 = 1 << 8;
const RING_MASK: u64 = 0xff;
/// Messages between two turns of the card.
const BATCH: usize = 64;

pub(crate) struct Session {
    line: Connection,
    /// Of the protocol.
    protocol: u64,
    features: Features,
    memory: Memory,
    rings: Vec<Ring>,
    /// The log of writes to the memory.
    log: Option<Arc<Log>>,
    transfer: Option<Transfer>,
}

impl Session {
    pub(crate) fn new(stream: UnixStream, watch: &Watch) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let line = Connection::new(stream).without_sockets();
        watch.add(line.as_raw_fd(), Source::FrontEnd)?;
        let rings = (0..2 * PAIRS_MAX).map(|_| Ring::new()).collect();
        Ok(Session {
            line,
            protocol: 0,
            features: Features::default(),
            memory: Memory::none(),
            rings,
            log: None,
            transfer: None,
        })
    }

    /// Does what the front end asks.
    ///
    /// # Errors
    /// The session has ended, or has to.
    pub(crate) fn serve(&mut self, device: &mut Device, watch: &Watch) -> Result<(), End> {
        for _ in 0..BATCH {
            let Some(message) = self.line.next()? else { break };
            self.obey(message, device, watch)?;
        }
        Ok(())
    }

    fn obey(
        &mut self,
        mut message: Message,
        device: &mut Device,
        watch: &Watch,
    ) -> Result<(), End> {
        let mut fds = std::mem::take(&mut message.fds);
        let answer = match message.request {
            Request::GetFeatures => Some(self.offered().0),
            Request::GetProtocolFeatures => Some(PROTOCOL_FEATURES),
            Request::GetQueueNum => Some(PAIRS_MAX as u64),
            _ => None,
        };
        if let Some(answer) = answer {
            return self.line.answer(&message, &answer.to_ne_bytes());
        }
        match message.request {
            Request::SetFeatures => self.accept(Features(message.long(0)?), device)?,
            Request::ResetOwner | Request::ResetDevice => {
                self.reset(watch);
                device.reset();
            }
            Request::SetMemTable => {
                self.memory = Memory::map(&message, fds)?;
                self.log_writes()?;
            }
            Request::SetLogBase => {
                self.log = Some(Arc::new(Log::map(&message, fds.pop())?));
                self.log_writes()?;
                return self.line.answer(&message, &0_u64.to_ne_bytes());
            }
            Request::SetVringNum => {
                let number = message.word(0)?;
                self.ring(number)?.set_size(number, message.word(1)?)?;
            }
            Request::SetVringAddr => {
                let ring = message.word(0)? as usize;
                let ring = self.rings.get_mut(ring).ok_or_else(|| no_ring(ring))?;
                ring.set_addresses(&message, &self.memory)?;
            }
            Request::SetVringBase => self.ring(message.word(0)?)?.set_base(message.word(1)?),
            Request::GetVringBase => {
                let number = message.word(0)?;
                let ring = self.ring(number)?;
                unwatch(ring, watch);
                let state = [number, ring.stop()].map(u32::to_ne_bytes).concat();
                self.forget_log_of_stopped();
                return self.line.answer(&message, &state);
            }
            Request::SetVringEnable => {
                self.ring(message.word(0)?)?.enable(message.word(1)? != 0);
            }
            Request::SetVringKick => {
                self.start(&message, fds.pop(), watch)?;
                device.starts();
            }
            Request::SetVringCall => {
                let number = (message.long(0)? & RING_MASK) as u32;
                self.ring(number)?.set_call(number, fds.pop())?;
            }
            Request::SetProtocolFeatures => self.protocol = message.long(0)? & PROTOCOL_FEATURES,
            Request::SendRarp => {
                let [mac @ .., _, _] = message.long(0)?.to_ne_bytes();
                device.announce(mac);
            }
            Request::SetDeviceStateFd => {
                let answer = self.begin_transfer(&message, fds.pop(), device, watch)?;
                return self.line.answer(&message, &answer.to_ne_bytes());
            }
            Request::CheckDeviceState => {
                let answer = self.end_transfer(device, watch);
                return self.line.answer(&message, &answer.to_ne_bytes());
            }
            Request::SetBackendFd | Request::GetConfig | Request::VringKick => {
                return Err(message.unknown());
            }
            // Answered above, or nothing to do: the front end looks at the log when it wants to.
            Request::GetFeatures
            | Request::GetProtocolFeatures
            | Request::GetQueueNum
            | Request::SetOwner
            | Request::SetLogFd
            | Request::SetVringErr => {}
        }
        self.line.acknowledge(&message)
    }

    fn ring(&mut self, number: u32) -> Result<&mut Ring, End> {
        let number = number as usize;
        self.rings.get_mut(number).ok_or_else(|| no_ring(number))
    }

    fn accept(&mut self, features: Features, device: &mut Device) -> Result<(), End> {
        let more = features.0 & !self.offered().0;
        if more != 0 {
            return Err(End::refused(format!("features {more:#x}, which were not offered")));
        }
        let was_logging = self.is_logging();
        self.features = features;
        if self.is_logging() != was_logging {
            // Another move has its own log.
            if was_logging {
                self.log = None;
            }
            self.log_writes()?;
        }
        for ring in &mut self.rings {
            ring.set_event_idx(features.has(feature::EVENT_IDX));
            // Without the protocol's features, there is no message that enables a ring.
            if !features.has(feature::PROTOCOL_FEATURES) {
                ring.enable(true);
            }
        }
        if !features.has(feature::VERSION_1) {
            device.report(Event::Legacy);
        }
        device.accept(features);
        Ok(())
    }

    fn start(
        &mut self,
        message: &Message,
        kick: Option<std::os::fd::OwnedFd>,
        watch: &Watch,
    ) -> Result<(), End> {
        let said = message.long(0)?;
        let number = (said & RING_MASK) as usize;
        let kick = kick.filter(|_| said & NO_FD == 0);
        let without =
            || format!("ring {number} without kicks, which QEMU's card has with ioeventfd=on");
        let kick = kick.ok_or_else(|| End::refused(without()))?;
        let event_idx = self.features.has(feature::EVENT_IDX);
        let ring = self.rings.get_mut(number).ok_or_else(|| no_ring(number))?;
        unwatch(ring, watch);
        ring.start(number, kick, &self.memory.guest, event_idx)?;
        let fd = ring.kick_fd().expect("it has just been set");
        watch.add(fd, Source::Ring(number)).map_err(|error| {
            End::refused(format!("a descriptor for kicks of ring {number}: {error}"))
        })
    }

    fn reset(&mut self, watch: &Watch) {
        for ring in &mut self.rings {
            unwatch(ring, watch);
            ring.stop();
            ring.enable(false);
        }
        self.features = Features::default();
        self.forget_log_of_stopped();
    }

    /// Before its end: descriptors that the front end has, too, would continue to wake us.
    pub(crate) fn leave(&mut self, watch: &Watch) {
        for ring in &self.rings {
            unwatch(ring, watch);
        }
        self.close_pipe(watch);
        watch.remove(self.line.as_raw_fd());
    }
}

fn no_ring(number: usize) -> End {
    End::refused(format!("ring {number}, of {}", 2 * PAIRS_MAX))
}

fn unwatch(ring: &Ring, watch: &Watch) {
    if let Some(fd) = ring.kick_fd() {
        watch.remove(fd);
    }
}
