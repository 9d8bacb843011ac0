//! Plays a script: the guest's stack is the kernel's, its peer and the fabric are the test.

use std::collections::VecDeque;
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;
use std::time::{Duration, Instant};

use vcc_frames::wire::*;
use vcc_frames::{Packet, icmp};

use crate::across::{self, Handshake};
use crate::application::{Application, pattern};
use crate::bed::{GUEST, Lane, Mode, Settings};
use crate::cards::Card;
use crate::option::{Cookie, TcpOption};
use crate::peer::Peer;
use crate::script::{Call, Event, Script, What};
use crate::segment::{Initial, Segment};
use crate::wire::Seen;

/// The one that opens has this TCP port, the one that listens the other.
pub const OPENER_PORT: u16 = 40_000;
pub const LISTENER_PORT: u16 = 80;
const FIRST_ISN: u32 = 1_000_000;
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// RFC 792: the header of IP and eight bytes more.
const QUOTED_BYTES: usize = 8;

/// What the guest sent, segment by segment, without what depends on the clock.
pub type Trace = Vec<String>;

struct Player<'a> {
    mode: Mode,
    lane: &'a mut Lane,
    settings: Settings,
    application: Application,
    peer: Peer,
    handshake: Handshake,
    /// The last data that left to the fabric.
    last_data: Option<Seen>,
    syns: Vec<(u32, u16)>,
    trace: Trace,
    history: VecDeque<String>,
}

/// Plays a script in the lane, inside of its guest, with a peer of this address, which no other run
/// uses.
///
/// # Errors
/// The line that does not hold, why, and the lines and segments before it.
pub fn play(script: &Script, lane: &mut Lane, peer: Ipv4Addr) -> Result<Trace, String> {
    let mode = lane.mode;
    let listens = script.events.iter().any(|event| matches!(event.what, What::Call(Call::Listen)));
    let (ours, theirs) = match listens {
        true => (LISTENER_PORT, OPENER_PORT),
        false => (OPENER_PORT, LISTENER_PORT),
    };
    let mut player = Player {
        mode,
        lane,
        settings: Settings::begin(),
        application: Application::default(),
        peer: Peer::new(SocketAddrV4::new(GUEST, ours), SocketAddrV4::new(peer, theirs), FIRST_ISN),
        handshake: Handshake::default(),
        last_data: None,
        syns: Vec::new(),
        trace: Trace::new(),
        history: VecDeque::new(),
    };
    let outcome = player.play_all(script);
    player.end();
    outcome.map(|()| player.trace)
}

impl Player<'_> {
    fn play_all(&mut self, script: &Script) -> Result<(), String> {
        let mode = self.mode;
        for event in script.events.iter().filter(|event| event.is_for(mode)) {
            self.history.push_back(format!("{:4}  {}", event.line, event.text));
            self.play_one(event).map_err(|why| self.report(script, event.line, &why))?;
        }
        let last = script.events.last().map_or(0, |event| event.line);
        self.quiet().map_err(|why| self.report(script, last, &format!("after the script: {why}")))
    }

    fn report(&self, script: &Script, line: usize, why: &str) -> String {
        let mut report = format!("{}:{line}: {}: {why}\n", script.name, self.mode.name());
        for entry in &self.history {
            let _ = writeln!(report, "  {entry}");
        }
        report
    }

    fn play_one(&mut self, event: &Event) -> Result<(), String> {
        match &event.what {
            What::Call(call) => self.call(call),
            What::Guest(wanted) => self.guest_sends(wanted, event),
            What::Peer(segment) => self.peer_sends(segment, event),
            What::TooBig { mtu_bytes } => self.too_big(*mtu_bytes),
            What::Wait(time) => {
                thread::sleep(*time);
                Ok(())
            }
            What::Quiet => self.quiet(),
            What::Again { isn } => {
                self.peer.initial = Initial { guest: None, peer: *isn };
                self.handshake = Handshake::default();
                self.application.end();
                Ok(())
            }
            What::Set { name, value } => self.settings.set(name, value),
            What::RtoMin(time) => {
                self.settings.set_rto_min(time);
                Ok(())
            }
            What::Isn(isn) => {
                self.peer.initial.peer = *isn;
                Ok(())
            }
            What::Route(card) => {
                self.lane.fabric_of(*card);
                self.settings.route_by(*card);
                Ok(())
            }
            What::Pause => {
                self.fence()?;
                self.lane.pause();
                Ok(())
            }
            What::Resume => {
                self.lane.resume();
                Ok(())
            }
            What::Idle(time) => {
                self.lane.set_idle(Some(*time));
                Ok(())
            }
            What::Forgotten => self.forgotten(),
        }
    }

    fn forgotten(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + self.lane.patience;
        while self.lane.knows(*self.peer.address.ip()) {
            if Instant::now() >= deadline {
                return Err("the port has not forgotten the connection".into());
            }
            thread::sleep(LOOK_AGAIN);
        }
        self.lane.set_idle(None);
        Ok(())
    }

    fn call(&mut self, call: &Call) -> Result<(), String> {
        let application = &mut self.application;
        match call {
            Call::Option { name, value } => application.set_option(name, *value),
            Call::Connect => application.connect(self.peer.guest, self.peer.address),
            Call::ConnectWith { bytes } => {
                application.connect_with(self.peer.guest, self.peer.address, *bytes)
            }
            Call::Connected => application.connected(),
            Call::Fails(error) => application.fails(error),
            Call::Listen => application.listen(self.peer.guest),
            Call::Accept => application.accept(),
            Call::Send { bytes, urgent } => application.send(*bytes, *urgent),
            Call::Receive { bytes } => application.receive(*bytes),
            Call::ReceiveUrgent => application.receive_urgent(),
            Call::ReceiveEnd => application.receive_end(),
            Call::ShutDown => application.shut_down(),
            Call::Close => {
                application.close();
                Ok(())
            }
            Call::Abort => application.abort(),
            Call::State(name) => application.becomes(name),
        }
    }

    fn log(&mut self, where_to: &str, from_guest: bool, seen: &Seen) -> Segment {
        let segment = Segment::from_packet(&seen.packet, from_guest, self.peer.initial);
        self.history.push_back(format!("        {where_to:7} {segment}"));
        segment
    }

    /// The next segment from the guest by this card, as it left, and as it reached the fabric, if
    /// one does until then.
    fn next_from_guest(
        &mut self,
        card: Card,
        deadline: Instant,
    ) -> Result<Option<(Seen, Seen)>, String> {
        let outer = loop {
            match self.lane.fabric_of(card).next(deadline) {
                None => return Ok(None),
                Some(seen) if self.peer.knows(&seen.packet) => break seen,
                Some(_) => {}
            }
        };
        let inner = match card {
            Card::First => self.left_guest(&outer)?,
            Card::Second => outer.clone(),
        };
        self.peer.learn(&inner, &outer);
        if !inner.packet.payload.is_empty() {
            self.last_data = Some(outer.clone());
        }
        match card {
            Card::First => {
                self.log("guest", true, &inner);
                self.log("fabric", true, &outer);
                across::from_guest(self.mode, &mut self.handshake, &inner, &outer)?;
            }
            Card::Second => {
                self.log("card 2", true, &outer);
                self.handshake.beside(&outer, true)?;
            }
        }
        Ok(Some((inner, outer)))
    }

    /// What a segment was that has reached the fabric behind the port.
    fn left_guest(&mut self, outer: &Seen) -> Result<Seen, String> {
        loop {
            match self.lane.listener.poll(true) {
                None => {
                    self.log("fabric", true, outer);
                    return Err("this was not sent by the guest".into());
                }
                Some(seen) if self.peer.knows(&seen.packet) => return Ok(seen),
                Some(_) => {}
            }
        }
    }

    /// A SYN that the guest has sent before: if the test has to wait for its CPU, it comes again.
    fn is_syn_again(&mut self, packet: &Packet) -> bool {
        let this = (packet.seq, packet.flags & !(ECE | CWR | AE));
        let is_known = self.syns.contains(&this);
        if packet.flags & SYN != 0 && !is_known {
            self.syns.push(this);
        }
        is_known
    }

    fn guest_sends(&mut self, wanted: &Segment, event: &Event) -> Result<(), String> {
        let deadline = Instant::now() + self.lane.patience;
        loop {
            let Some((inner, outer)) = self.next_from_guest(event.card, deadline)? else {
                return Err(self.nothing_left(event.card)?.into());
            };
            let is_again = self.is_syn_again(&inner.packet);
            let segment = Segment::from_packet(&inner.packet, true, self.peer.initial);
            match segment.differs(wanted) {
                Some(_) if is_again => continue,
                Some(what) => return Err(format!("{what} of {segment}")),
                None => {}
            }
            let payload = pattern(segment.stream_offset(), inner.packet.payload.len());
            if inner.packet.payload != payload {
                return Err("the payload is not what the application sent".into());
            }
            self.trace.push(timeless(segment));
            return self.compare_across(event, &outer, true);
        }
    }

    /// Why nothing has left by this card.
    fn nothing_left(&mut self, card: Card) -> Result<&'static str, String> {
        let other = card.other();
        let is_there = !self.lane.lacks(other);
        match is_there && self.next_from_guest(other, Instant::now())?.is_some() {
            true => Ok("the guest sends this by its other card"),
            false => Ok("the guest sends nothing"),
        }
    }

    fn compare_across(&self, event: &Event, seen: &Seen, from_guest: bool) -> Result<(), String> {
        let Some(Some(wanted)) = event.across(self.mode) else { return Ok(()) };
        let segment = Segment::from_packet(&seen.packet, from_guest, self.peer.initial);
        match segment.differs(wanted) {
            Some(what) => Err(format!("on the other side of the port, {what} of {segment}")),
            None => Ok(()),
        }
    }

    fn peer_sends(&mut self, segment: &Segment, event: &Event) -> Result<(), String> {
        let packet = self.peer.packet(segment)?;
        let outer = Seen { frame: packet.frame(), packet };
        self.lane.fabric_of(event.card).send(&outer.frame);
        if event.card == Card::Second {
            self.log("card 2", false, &outer);
            return self.handshake.beside(&outer, false);
        }
        if event.across(self.mode) == Some(&None) {
            self.fence()?;
            return match self.arrived(Instant::now()) {
                None => Ok(()),
                Some(inner) => Err(format!("{:?} reached the guest", inner.packet)),
            };
        }
        let deadline = Instant::now() + self.lane.patience;
        let inner = self.arrived(deadline).ok_or("it did not reach the guest")?;
        self.log("guest", false, &inner);
        if self.lane.is_paused() {
            self.lane.await_queued(deadline).ok_or("it did not reach the guest's queue")?;
        }
        across::to_guest(self.mode, &mut self.handshake, &outer, &inner)?;
        self.compare_across(event, &inner, false)
    }

    fn arrived(&mut self, deadline: Instant) -> Option<Seen> {
        loop {
            let seen = self.lane.listener.next(false, deadline)?;
            if self.peer.knows(&seen.packet) {
                return Some(seen);
            }
        }
    }

    fn too_big(&mut self, mtu_bytes: u32) -> Result<(), String> {
        let data = self.last_data.as_ref().ok_or("the guest has sent no data")?;
        let message = icmp::too_big(&data.frame, &data.packet.headers(), mtu_bytes, QUOTED_BYTES);
        self.lane.fabric.send(&message);
        Ok(())
    }

    fn fence(&mut self) -> Result<(), String> {
        if self.lane.is_paused() {
            return Err("the guest is paused".into());
        }
        self.lane.fence(&self.peer.blank(), self.settings.card);
        Ok(())
    }

    /// The guest has processed what came, and sent nothing that the script does not say.
    fn quiet(&mut self) -> Result<(), String> {
        self.fence()?;
        for card in Card::BOTH {
            while !self.lane.lacks(card)
                && let Some((inner, _)) = self.next_from_guest(card, Instant::now())?
            {
                if !self.is_syn_again(&inner.packet) {
                    return Err("the guest sends this, which is not in the script".into());
                }
            }
        }
        match self.arrived(Instant::now()) {
            None => Ok(()),
            Some(seen) => {
                self.log("guest", false, &seen);
                Err("this came to the guest, and the peer did not send it".into())
            }
        }
    }

    /// Nothing of this run comes in the next.
    fn end(&mut self) {
        self.lane.resume();
        self.lane.set_idle(None);
        self.application.end();
        self.lane.fence(&self.peer.blank(), self.settings.card);
        self.lane.forget();
    }
}

/// The guest's clock is not the same in two runs.
fn timeless(mut segment: Segment) -> String {
    for option in segment.options.iter_mut().flatten() {
        match option {
            TcpOption::Timestamps { value, .. } => *value = None,
            TcpOption::FastOpen(cookie @ Cookie::Is(_)) => *cookie = Cookie::Seen,
            _ => {}
        }
    }
    segment.to_string()
}
