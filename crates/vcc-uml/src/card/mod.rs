//! A guest's network card: virtio-net with a host NIC's offloads, a wire of a given rate, and
//! between the two the port of the driver domain, if there is one. Between the guest's kernel and the
//! port may be what a dishonest guest does to its frames.
//!
//! A frame counts as sent when its last bit has left, so the guest's TCP sees backpressure as from
//! a real card (Linux: TCP small queues, BQL). Interrupts are moderated like a real card's: receive
//! interrupts at most about every `interrupt_every_ns`, transmit completions that long after the
//! first one. A port that holds what the guest sends is a process that has copied the frame, as `vcc
//! domain` is: there it counts as sent at once, while the guest runs.

mod moderation;
mod offload;
mod rings;
mod tamper;
mod transmitter;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use vcc_domain::{Checksum, Frame, Out, Port, Receipt, ReceiveRing, Verdict};
use vcc_net::vhost_user::{Message, Request};
use vcc_net::virtio::feature::{self, EVENT_IDX};

use crate::vhost_user::{CardLine, PROTOCOL_FEATURES};
use moderation::Moderation;
use rings::{RECEIVE, Rings, SEND};
pub use tamper::{Tamper, Tampered};
use transmitter::Transmitter;

/// Checksum and segmentation offload from the guest, for both families and with ECN; address and MTU
/// from the device; rings with indirect descriptors and event indices; virtio 1.
const FEATURES: u64 = feature::CSUM
    | feature::GUEST_CSUM
    | feature::MTU
    | feature::MAC
    | feature::HOST_TSO4
    | feature::HOST_TSO6
    | feature::HOST_ECN
    | feature::INDIRECT_DESC
    | EVENT_IDX
    | feature::PROTOCOL_FEATURES
    | feature::VERSION_1;

/// struct virtio_net_hdr_v1.
const HEADER_BYTES: usize = 12;
/// VIRTIO_NET_HDR_F_NEEDS_CSUM.
const NEEDS_CHECKSUM: u8 = 1;
/// struct virtio_net_config: address, status, ring pairs, MTU.
const CONFIG_BYTES: usize = 12;
const CONFIG_STATUS: usize = 6;
const CONFIG_MTU: usize = 10;
/// VHOST_USER_GET_CONFIG: offset, size and flags precede the bytes.
const CONFIG_HEADER_BYTES: usize = 12;

/// What happens to a port at a time, besides its frames: it has other parameters, or another one takes
/// its place. It may send.
pub type PortChange = Box<dyn FnOnce(&mut Port, u64, &mut Out)>;

pub struct CardSpec {
    pub mac: [u8; 6],
    pub mtu_bytes: u16,
    /// Rate of its wire.
    pub rate_bps: u64,
    pub interrupt_every_ns: u64,
    /// Seed of the interrupt moderation.
    pub seed: u64,
    /// Frames that the driver domain keeps while the guest's ring is full.
    pub backlog_segs: u32,
    pub port: Option<Port>,
    /// What happens to the port, and when, in order of time.
    pub changes: VecDeque<(u64, PortChange)>,
    pub tamper: Option<Box<dyn Tamper>>,
}

pub(crate) struct Card {
    spec: CardSpec,
    line: CardLine,
    /// The guest's call descriptor. Unused, but the guest requires that it is taken.
    _calls: Option<OwnedFd>,
    features: u64,
    rings: Rings,
    transmitter: Transmitter,
    /// Frames to be completed to the guest.
    sending: VecDeque<Sending>,
    arrivals: VecDeque<(u64, Vec<u8>)>,
    /// Frames from the wire that the port has passed, and for which the guest has had no buffer.
    backlog: VecDeque<(Frame, Receipt)>,
    /// Earliest time of the next receive interrupt.
    quiet_until_ns: u64,
    moderation: Moderation,
    /// Pending interrupts, one bit per ring.
    owed: u32,
    /// Frames have passed in either direction since the last query.
    has_passed_frames: bool,
    /// Frames dropped for lack of a receive buffer.
    missed_frames: u64,
    scratch: Vec<u8>,
}

/// A frame that the guest has sent.
struct Sending {
    /// Its last bit has left, or the port has it.
    done_ns: u64,
    /// The guest is interrupted for it.
    call_ns: u64,
    head: u16,
}

impl Card {
    pub fn new(spec: CardSpec, line: CardLine) -> io::Result<Self> {
        Ok(Self {
            transmitter: Transmitter::new(spec.rate_bps),
            moderation: Moderation::new(spec.interrupt_every_ns, spec.seed),
            spec,
            line,
            _calls: None,
            features: 0,
            rings: Rings::new()?,
            sending: VecDeque::new(),
            arrivals: VecDeque::new(),
            backlog: VecDeque::new(),
            quiet_until_ns: 0,
            owed: 0,
            has_passed_frames: false,
            missed_frames: 0,
            scratch: Vec::new(),
        })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.line.fd()
    }

    /// Does the guest use the card?
    pub fn is_up(&self) -> bool {
        self.rings.is_up()
    }

    pub fn missed_frames(&self) -> u64 {
        self.missed_frames
    }

    pub fn port(&self) -> Option<&Port> {
        self.spec.port.as_ref()
    }

    /// Lower bound of the time of the next event.
    pub fn next_ns(&self) -> u64 {
        let arrival_ns = self.arrivals.front().map(|(at_ns, _)| (*at_ns).max(self.quiet_until_ns));
        let sent_ns = self.sending.front().map(|sent| sent.call_ns);
        let port_ns = self.spec.port.as_ref().and_then(Port::next_deadline_ns);
        let change_ns = self.spec.changes.front().map(|(at_ns, _)| *at_ns);
        [arrival_ns, sent_ns, port_ns, change_ns].into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// A frame arrives from the wire, in order of time.
    pub fn arrive(&mut self, at_ns: u64, frame: Vec<u8>) {
        debug_assert!(self.arrivals.back().is_none_or(|(before_ns, _)| *before_ns <= at_ns));
        self.arrivals.push_back((at_ns, frame));
    }

    /// The next frame whose transmission starts before `end_ns`.
    pub fn next_sent(&mut self, end_ns: u64) -> Option<(u64, Vec<u8>)> {
        self.transmitter.next_before(end_ns)
    }

    pub fn next_sent_ns(&self) -> Option<u64> {
        self.transmitter.next_ns()
    }

    /// Does all work that is due, whether or not the guest runs.
    pub fn work(&mut self, now_ns: u64) -> io::Result<()> {
        self.advance_port(now_ns)?;
        self.complete(now_ns)?;
        self.receive(now_ns)?;
        for ring in [RECEIVE, SEND] {
            self.owed |= u32::from(self.rings.wants_call(ring)?) << ring;
        }
        Ok(())
    }

    /// Is an interrupt pending?
    pub fn owes_interrupt(&self) -> bool {
        self.owed != 0
    }

    /// Takes the pending interrupts, one bit per ring.
    pub fn take_owed(&mut self) -> u32 {
        std::mem::take(&mut self.owed)
    }

    pub fn take_passed_frames(&mut self) -> bool {
        std::mem::take(&mut self.has_passed_frames)
    }

    /// What is due happens, before the next frame that the port sees.
    fn change_port(&mut self, now_ns: u64) -> io::Result<()> {
        let mut out = Out::default();
        while self.spec.changes.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
            let change = self.spec.changes.pop_front();
            if let Some(((_, change), port)) = change.zip(self.spec.port.as_mut()) {
                change(port, now_ns, &mut out);
            }
        }
        self.forward(now_ns, out)
    }

    fn advance_port(&mut self, now_ns: u64) -> io::Result<()> {
        self.change_port(now_ns)?;
        let Some(port) = &mut self.spec.port else { return Ok(()) };
        if port.next_deadline_ns().is_none_or(|due_ns| due_ns > now_ns) {
            return Ok(());
        }
        let mut out = Out::default();
        port.advance(now_ns, &mut out);
        self.forward(now_ns, out)
    }

    /// Forwards the frames that the port has let go.
    fn forward(&mut self, now_ns: u64, out: Out) -> io::Result<()> {
        for mut frame in out.to_fabric {
            offload::cut(&mut frame, |frame| {
                self.transmitter.send(now_ns, frame);
            });
        }
        out.to_guest.iter().try_for_each(|frame| self.hand_over(now_ns, frame).map(|_| ()))
    }

    fn complete(&mut self, now_ns: u64) -> io::Result<()> {
        while let Some(sent) = self.sending.front().filter(|sent| sent.done_ns <= now_ns) {
            self.rings.give_back(sent.head)?;
            self.sending.pop_front();
        }
        Ok(())
    }

    fn receive(&mut self, now_ns: u64) -> io::Result<()> {
        if self.arrivals.front().is_none_or(|(at_ns, _)| *at_ns > now_ns)
            || self.quiet_until_ns > now_ns
        {
            return Ok(());
        }
        self.quiet_until_ns = now_ns + self.moderation.next_ns();
        while self.arrivals.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
            let Some((_, bytes)) = self.arrivals.pop_front() else { break };
            let mut frame = Frame { bytes, gso_size: 0, checksum: Checksum::Full };
            let mut out = Out::default();
            let (verdict, receipt) = match &mut self.spec.port {
                // The driver domain's clock is the host's: it sees the frame with the interrupt.
                Some(port) => port.to_guest(now_ns, &mut frame, &mut out),
                None => (Verdict::Pass, Receipt::unread()),
            };
            if verdict == Verdict::Pass {
                self.give(now_ns, frame, receipt, &mut out)?;
            }
            self.forward(now_ns, out)?;
        }
        self.rings.want_no_kick(RECEIVE)
    }

    /// Gives the guest what has come from the wire, or keeps it until the guest has a buffer for it.
    fn give(
        &mut self,
        now_ns: u64,
        frame: Frame,
        receipt: Receipt,
        out: &mut Out,
    ) -> io::Result<()> {
        let may_wait = (self.backlog.len() as u32) < self.spec.backlog_segs;
        if may_wait && (!self.backlog.is_empty() || self.rings.free_receive_segs()? == 0) {
            self.backlog.push_back((frame, receipt));
        } else if self.hand_over(now_ns, &frame)? {
            self.placed(now_ns, frame, receipt, out)?;
        }
        Ok(())
    }

    /// Gives the guest what has waited for its buffers.
    fn give_waiting(&mut self, now_ns: u64) -> io::Result<()> {
        if self.backlog.is_empty() {
            return Ok(());
        }
        while !self.backlog.is_empty() && self.rings.free_receive_segs()? > 0 {
            let Some((frame, receipt)) = self.backlog.pop_front() else { break };
            let mut out = Out::default();
            if self.hand_over(now_ns, &frame)? {
                self.placed(now_ns, frame, receipt, &mut out)?;
            }
            self.forward(now_ns, out)?;
        }
        self.owed |= u32::from(self.rings.wants_call(RECEIVE)?) << RECEIVE;
        Ok(())
    }

    /// The frame lies in the guest's memory.
    fn placed(
        &mut self,
        now_ns: u64,
        frame: Frame,
        receipt: Receipt,
        out: &mut Out,
    ) -> io::Result<()> {
        self.tell_room(now_ns, out)?;
        if let Some(port) = &mut self.spec.port {
            port.placed(now_ns, frame, receipt, out);
        }
        Ok(())
    }

    /// Reports to the port how much room there is for what arrives.
    fn tell_room(&mut self, now_ns: u64, out: &mut Out) -> io::Result<()> {
        let behind_segs = self.spec.backlog_segs - self.backlog.len() as u32;
        let ring = ReceiveRing { behind_segs, ..self.rings.receive_ring()? };
        if let Some(port) = &mut self.spec.port {
            port.set_room(now_ns, ring, out);
        }
        Ok(())
    }

    /// Returns whether the guest's ring had room. The card does not vouch for the checksum, so the
    /// guest verifies it and every rewrite with it.
    fn hand_over(&mut self, now_ns: u64, frame: &Frame) -> io::Result<bool> {
        match &mut self.spec.tamper {
            Some(tamper) => {
                let tampered = tamper.receives(frame.bytes.clone());
                self.carry_out(now_ns, tampered)
            }
            None => self.put_received(&frame.bytes),
        }
    }

    /// Whether the guest's ring had room for all that its kernel receives.
    fn carry_out(&mut self, now_ns: u64, tampered: Tampered) -> io::Result<bool> {
        let mut has_room = true;
        for bytes in &tampered.received {
            has_room &= self.put_received(bytes)?;
        }
        for bytes in tampered.sent {
            self.leave(now_ns, &mut Frame::full(bytes))?;
        }
        Ok(has_room)
    }

    fn put_received(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let mut header = [0; HEADER_BYTES];
        header[10] = 1; // num_buffers
        self.has_passed_frames = true;
        let has_room = self.rings.put_received(&header, bytes)?;
        self.missed_frames += u64::from(!has_room);
        Ok(has_room)
    }

    /// Takes the frames that the guest has queued by now.
    pub fn take_sent(&mut self, now_ns: u64) -> io::Result<()> {
        self.change_port(now_ns)?;
        // The guest may have read its ring.
        self.give_waiting(now_ns)?;
        let mut out = Out::default();
        self.tell_room(now_ns, &mut out)?;
        self.forward(now_ns, out)?;
        let mut header = [0; HEADER_BYTES];
        while let Some(head) = self.rings.take_sent(&mut header, &mut self.scratch)? {
            let done_ns = self.send(now_ns, &header)?;
            let is_copied = self.spec.port.as_ref().is_some_and(Port::holds_frames);
            let (done_ns, call_ns) = match is_copied {
                true => (now_ns, now_ns),
                false => (done_ns, done_ns + self.spec.interrupt_every_ns),
            };
            self.sending.push_back(Sending { done_ns, call_ns, head });
            self.has_passed_frames = true;
        }
        self.rings.want_no_kick(SEND)
    }

    /// Sends the frame in `scratch`. Returns the time when its last bit has left, or when the port
    /// has it.
    fn send(&mut self, now_ns: u64, header: &[u8; HEADER_BYTES]) -> io::Result<u64> {
        let [flags, gso_type] = [header[0], header[1]];
        let gso_size = u16::from_le_bytes([header[4], header[5]]);
        let is_partial = flags & NEEDS_CHECKSUM != 0;
        let mut frame = Frame {
            bytes: std::mem::take(&mut self.scratch),
            gso_size: if gso_type == 0 { 0 } else { gso_size },
            checksum: if is_partial { Checksum::Partial } else { Checksum::Full },
        };
        if self.spec.tamper.is_some() {
            return self.send_tampered(now_ns, &mut frame);
        }
        let done_ns = self.leave(now_ns, &mut frame)?;
        // Reuse the buffer.
        self.scratch = frame.bytes;
        Ok(done_ns)
    }

    fn send_tampered(&mut self, now_ns: u64, frame: &mut Frame) -> io::Result<u64> {
        let mut cut = Vec::new();
        offload::cut(frame, |bytes| cut.push(bytes));
        for bytes in cut {
            let tamper = self.spec.tamper.as_mut();
            let tampered = tamper.map_or_else(Tampered::default, |it| it.sends(bytes));
            self.carry_out(now_ns, tampered)?;
        }
        Ok(self.transmitter.busy_until_ns().max(now_ns))
    }

    /// A frame of the guest passes the port. Returns the time when its last bit has left, or when
    /// the port has it.
    fn leave(&mut self, now_ns: u64, frame: &mut Frame) -> io::Result<u64> {
        let mut out = Out::default();
        let verdict = match &mut self.spec.port {
            Some(port) => port.from_guest(now_ns, frame, &mut out),
            None => Verdict::Pass,
        };
        let mut done_ns = now_ns;
        if verdict == Verdict::Pass {
            offload::cut(frame, |frame| done_ns = self.transmitter.send(now_ns, frame));
        }
        // A FACK follows the segment next to it, as the kernel's clone does.
        self.forward(now_ns, out)?;
        Ok(done_ns)
    }

    /// Serves one request of the guest at its time `now_ns`. False if it has closed the card.
    pub fn serve(&mut self, now_ns: u64) -> io::Result<bool> {
        let Some(asked) = self.line.receive()? else {
            self.rings.disable_all();
            return Ok(false);
        };
        match asked.request {
            Request::GetFeatures => self.line.answer(&asked, &FEATURES.to_ne_bytes())?,
            Request::GetProtocolFeatures => {
                self.line.answer(&asked, &PROTOCOL_FEATURES.to_ne_bytes())?;
            }
            Request::GetVringBase => self.line.answer(&asked, &asked.payload)?,
            Request::GetConfig => {
                let answer = self.config(&asked)?;
                self.line.answer(&asked, &answer)?;
            }
            Request::VringKick => {
                self.take_sent(now_ns)?;
                self.line.acknowledge(&asked)?;
            }
            _ => self.configure(asked)?,
        }
        Ok(true)
    }

    fn configure(&mut self, mut asked: Message) -> io::Result<()> {
        match asked.request {
            Request::SetFeatures => self.features = asked.long(0)?,
            Request::SetMemTable => {
                let fds = std::mem::take(&mut asked.fds);
                self.rings.map(&asked, fds)?;
            }
            Request::SetVringNum => self.rings.set_size(asked.word(0)?, asked.word(1)?)?,
            Request::SetVringBase => self.rings.set_base(asked.word(0)?, asked.word(1)?)?,
            Request::SetVringAddr => self.rings.set_addresses(&asked)?,
            Request::SetVringEnable => {
                let event_idx = self.features & EVENT_IDX != 0;
                self.rings.enable(asked.word(0)?, asked.word(1)? != 0, event_idx)?;
            }
            Request::SetBackendFd => self._calls = asked.fds.pop(),
            Request::SetOwner | Request::SetProtocolFeatures => {}
            _ => return Err(asked.unknown().into()),
        }
        self.line.acknowledge(&asked)
    }

    fn config(&self, asked: &Message) -> io::Result<Vec<u8>> {
        let mut config = [0; CONFIG_BYTES];
        config[..6].copy_from_slice(&self.spec.mac);
        config[CONFIG_STATUS] = 1; // the link is up
        config[CONFIG_MTU..].copy_from_slice(&self.spec.mtu_bytes.to_le_bytes());
        let mut answer = asked.payload.clone();
        let (offset, size) = (asked.word(0)? as usize, asked.word(1)? as usize);
        for (i, byte) in answer.iter_mut().skip(CONFIG_HEADER_BYTES).take(size).enumerate() {
            *byte = config.get(offset + i).copied().unwrap_or(0);
        }
        Ok(answer)
    }
}
