//! Plays a script: the guest's stack is the kernel's, its peer and the fabric are the test.

use std::collections::VecDeque;
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::thread;
use std::time::Instant;

use vcc_frames::wire::*;
use vcc_frames::{Packet, icmp, options};

use crate::across::{self, Handshake};
use crate::application::{Application, pattern};
use crate::bed::{GATEWAY_MAC, GUEST, GUEST_MAC, Lane, Mode, Settings};
use crate::option::{Cookie, Known, TcpOption};
use crate::script::{Call, Event, Script, What};
use crate::segment::{Initial, Segment, absolute};
use crate::wire::Seen;

/// The one that opens has this TCP port, the one that listens the other.
const OPENER_PORT: u16 = 40_000;
const LISTENER_PORT: u16 = 80;
const FIRST_ISN: u32 = 1_000_000;
const WINDOW_UNLESS_SAID: u16 = 0xffff;
/// RFC 792: the header of IP and eight bytes more.
const QUOTED_BYTES: usize = 8;

/// What the guest sent, segment by segment, without what depends on the clock.
pub type Trace = Vec<String>;

struct Player<'a> {
    mode: Mode,
    lane: &'a mut Lane,
    settings: Settings,
    application: Application,
    guest: SocketAddrV4,
    peer: SocketAddrV4,
    initial: Initial,
    handshake: Handshake,
    /// The guest's SYN asked the fabric for ECN.
    asked_ecn: bool,
    tsval: u32,
    cookie: Vec<u8>,
    /// The last data that left to the fabric.
    last_data: Option<Seen>,
    syns: Vec<(u32, u16)>,
    trace: Trace,
    told: VecDeque<String>,
}

/// Plays a script in the lane, inside of its guest, with a peer of this address, which no other run
/// uses.
///
/// # Errors
/// The line that does not hold, why, and what was said before.
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
        guest: SocketAddrV4::new(GUEST, ours),
        peer: SocketAddrV4::new(peer, theirs),
        initial: Initial { guest: None, peer: FIRST_ISN },
        handshake: Handshake::default(),
        asked_ecn: false,
        tsval: 0,
        cookie: Vec::new(),
        last_data: None,
        syns: Vec::new(),
        trace: Trace::new(),
        told: VecDeque::new(),
    };
    let outcome = player.play_all(script);
    player.end();
    outcome.map(|()| player.trace)
}

impl Player<'_> {
    fn play_all(&mut self, script: &Script) -> Result<(), String> {
        let mode = self.mode;
        for event in script.events.iter().filter(|event| event.is_for(mode)) {
            self.told.push_back(format!("{:4}  {}", event.line, event.text));
            self.play_one(event).map_err(|why| self.report(script, event.line, &why))?;
        }
        let last = script.events.last().map_or(0, |event| event.line);
        self.quiet().map_err(|why| self.report(script, last, &format!("after the script: {why}")))
    }

    fn report(&self, script: &Script, line: usize, why: &str) -> String {
        let mut report = format!("{}:{line}: {}: {why}\n", script.name, self.mode.name());
        for told in &self.told {
            let _ = writeln!(report, "  {told}");
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
                self.initial = Initial { guest: None, peer: *isn };
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
                self.initial.peer = *isn;
                Ok(())
            }
        }
    }

    fn call(&mut self, call: &Call) -> Result<(), String> {
        let application = &mut self.application;
        match call {
            Call::Option { name, value } => application.set_option(name, *value),
            Call::Connect => application.connect(self.guest, self.peer),
            Call::ConnectWith { bytes } => application.connect_with(self.guest, self.peer, *bytes),
            Call::Connected => application.connected(),
            Call::Fails(error) => application.fails(error),
            Call::Listen => application.listen(self.guest),
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

    /// Whether it is of this run's connection.
    fn is_ours(&self, packet: &Packet) -> bool {
        let peer = SocketAddr::from(self.peer).ip();
        packet.from.ip() == peer || packet.to.ip() == peer
    }

    fn tell(&mut self, where_to: &str, from_guest: bool, seen: &Seen) -> Segment {
        let segment = Segment::of(&seen.packet, from_guest, self.initial);
        self.told.push_back(format!("        {where_to:7} {segment}"));
        segment
    }

    /// The next segment from the guest, as it left, and as it reached the fabric, if one does until
    /// then.
    fn next_from_guest(&mut self, deadline: Instant) -> Result<Option<(Seen, Seen)>, String> {
        let outer = loop {
            match self.lane.fabric.next(deadline) {
                None => return Ok(None),
                Some(seen) if self.is_ours(&seen.packet) => break seen,
                Some(_) => {}
            }
        };
        let inner = loop {
            match self.lane.listener.poll(true) {
                None => {
                    self.tell("fabric", true, &outer);
                    return Err("this was not sent by the guest".into());
                }
                Some(seen) if self.is_ours(&seen.packet) => break seen,
                Some(_) => {}
            }
        };
        self.learn(&inner, &outer);
        self.tell("guest", true, &inner);
        self.tell("fabric", true, &outer);
        across::from_guest(self.mode, &mut self.handshake, &inner, &outer)?;
        Ok(Some((inner, outer)))
    }

    fn learn(&mut self, inner: &Seen, outer: &Seen) {
        if inner.packet.flags & SYN != 0 {
            self.initial.guest.get_or_insert(inner.packet.seq);
            self.asked_ecn = outer.packet.flags & (ECE | CWR) == ECE | CWR;
        }
        if !inner.packet.payload.is_empty() {
            self.last_data = Some(outer.clone());
        }
        for option in crate::option::decode(&inner.packet.options, 0) {
            match option {
                TcpOption::Timestamps { value, .. } => self.tsval = value.unwrap_or(self.tsval),
                TcpOption::FastOpen(Cookie::Is(cookie)) => self.cookie = cookie,
                _ => {}
            }
        }
    }

    /// A SYN that the guest has sent before: if the test has to wait for its CPU, it comes again.
    fn is_syn_again(&mut self, packet: &Packet) -> bool {
        let this = (packet.seq, packet.flags & !(ECE | CWR));
        let is_known = self.syns.contains(&this);
        if packet.flags & SYN != 0 && !is_known {
            self.syns.push(this);
        }
        is_known
    }

    fn guest_sends(&mut self, wanted: &Segment, event: &Event) -> Result<(), String> {
        let deadline = Instant::now() + self.lane.patience;
        loop {
            let came = self.next_from_guest(deadline)?.ok_or("the guest sends nothing")?;
            let (inner, outer) = came;
            let is_again = self.is_syn_again(&inner.packet);
            let segment = Segment::of(&inner.packet, true, self.initial);
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

    fn compare_across(&self, event: &Event, seen: &Seen, from_guest: bool) -> Result<(), String> {
        let Some(Some(wanted)) = event.across(self.mode) else { return Ok(()) };
        let segment = Segment::of(&seen.packet, from_guest, self.initial);
        match segment.differs(wanted) {
            Some(what) => Err(format!("on the other side of the port, {what} of {segment}")),
            None => Ok(()),
        }
    }

    fn peer_sends(&mut self, segment: &Segment, event: &Event) -> Result<(), String> {
        let packet = self.packet(segment)?;
        let outer = Seen { frame: packet.frame(), packet };
        self.lane.fabric.send(&outer.frame);
        if event.across(self.mode) == Some(&None) {
            self.fence();
            return match self.arrived(Instant::now()) {
                None => Ok(()),
                Some(inner) => Err(format!("{:?} reached the guest", inner.packet)),
            };
        }
        let deadline = Instant::now() + self.lane.patience;
        let inner = self.arrived(deadline).ok_or("it did not reach the guest")?;
        self.tell("guest", false, &inner);
        across::to_guest(self.mode, &mut self.handshake, &outer, &inner)?;
        self.compare_across(event, &inner, false)
    }

    fn arrived(&mut self, deadline: Instant) -> Option<Seen> {
        loop {
            let seen = self.lane.listener.next(false, deadline)?;
            if self.is_ours(&seen.packet) {
                return Some(seen);
            }
        }
    }

    fn packet(&self, segment: &Segment) -> Result<Packet, String> {
        let initial_guest = self.initial.guest.unwrap_or(0);
        let known = Known { tsval: self.tsval, cookie: &self.cookie, initial_guest };
        let parts = segment.options.iter().flatten().map(|option| option.encode(&known));
        let ece = if segment.ece_if_asked && self.asked_ecn { ECE } else { 0 };
        Ok(Packet {
            macs: [GUEST_MAC, GATEWAY_MAC],
            traffic_class: segment.mark.unwrap_or(0),
            seq: absolute(segment.seq, self.initial.peer),
            ack: segment.ack.map_or(0, |ack| absolute(ack, initial_guest)),
            flags: segment.flags | ece,
            window: segment.window.unwrap_or(WINDOW_UNLESS_SAID),
            urgent: segment.urgent.unwrap_or(0),
            options: options::join(&parts.collect::<Result<Vec<_>, _>>()?),
            payload: pattern(segment.stream_offset(), segment.bytes as usize),
            ..Packet::new(self.peer.into(), self.guest.into())
        })
    }

    fn too_big(&mut self, mtu_bytes: u32) -> Result<(), String> {
        let data = self.last_data.as_ref().ok_or("the guest has sent no data")?;
        let told = icmp::too_big(&data.frame, &data.packet.headers(), mtu_bytes, QUOTED_BYTES);
        self.lane.fabric.send(&told);
        Ok(())
    }

    fn fence(&mut self) {
        let macs = [GUEST_MAC, GATEWAY_MAC];
        let like = Packet { macs, ..Packet::new(self.peer.into(), self.guest.into()) };
        self.lane.fabric.fence(&like);
    }

    /// The guest has processed what came, and sent nothing that the script does not say.
    fn quiet(&mut self) -> Result<(), String> {
        self.fence();
        while let Some((inner, _)) = self.next_from_guest(Instant::now())? {
            if !self.is_syn_again(&inner.packet) {
                return Err("the guest sends this, which is not in the script".into());
            }
        }
        match self.arrived(Instant::now()) {
            None => Ok(()),
            Some(seen) => {
                self.tell("guest", false, &seen);
                Err("this came to the guest, and the peer did not send it".into())
            }
        }
    }

    /// Nothing of this run comes in the next.
    fn end(&mut self) {
        self.application.end();
        self.fence();
        while self.lane.fabric.poll().is_some() {}
        for from_guest in [false, true] {
            while self.lane.listener.poll(from_guest).is_some() {}
        }
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
