//! Packets through ports: one port for each place where packets were captured, because a packet that was
//! captured at two devices of a host is no retransmission.

use std::collections::HashMap;
use std::mem;
use std::net::SocketAddr;

use vcc_domain::{Counters, Frame, TcpHeader};
use vcc_engine::{FlowKey, FlowState};

use crate::connection::Connection;
use crate::packet::Packet;
use crate::problem::{Problem, What};
use crate::segment::{Mac, Segment};
use crate::sides::{IsGuest, Side};
use crate::treatment::Treatment;
use crate::tunnel::{self, Tunnel};
use crate::watched::{Behind, Watched};
use crate::whole_frame::whole;

/// More devices and tunnels than a host captures at.
const PLACES_MAX: usize = 1024;

/// Where packets were captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The index in [`crate::Capture::interfaces`].
    pub interface: usize,
    /// The number of the device, if the capture has it for each packet.
    pub device: Option<u32>,
    /// Inside this tunnel.
    pub tunnel: Option<Tunnel>,
}

/// Passes packets through ports.
pub struct Replay {
    treatment: Treatment,
    max_connections: usize,
    is_guest: Option<Box<IsGuest>>,
    place_of: HashMap<Place, usize>,
    watched: Vec<Watched>,
    /// The same places with the other end of each connection as its guest.
    turned: Option<Vec<Watched>>,
    /// The connections that any port has known.
    begun: usize,
    /// The connections of which any place remembers a segment.
    pairs: usize,
    /// Of the last packet.
    last_ns: u64,
    /// A packet was left out because it is of one place too many.
    is_full: bool,
    seen: Replayed,
}

/// A segment of a connection that has passed its port.
pub struct Passed<'a> {
    /// The index in [`Replayed::places`].
    pub place: usize,
    /// Since the capture's start.
    pub elapsed_ns: u64,
    /// On the clock of the state's own times.
    pub now_us: u64,
    pub key: FlowKey,
    /// When its connection began, which tells it from others between the same ends.
    pub began_ns: u64,
    pub from_guest: bool,
    pub segment: Segment,
    /// Behind it.
    pub state: &'a FlowState,
}

/// What a capture has shown.
#[derive(Clone, Default)]
pub struct Replayed {
    pub places: Vec<Place>,
    /// Of each place, in the order in which they ended; those that were live at the end behind them.
    pub connections: Vec<Connection>,
    /// Of all ports.
    pub counters: Vec<Counters>,
    pub packets: u64,
    /// Those of TCP that passed a port.
    pub segments: u64,
    /// Cut within the headers, by the capture's snapshot length.
    pub cut: u64,
    /// TCP between two ends of which neither is a guest.
    pub others: u64,
    /// Earlier than the packet before them.
    pub backwards: u64,
    /// Connections that were left out because of the limit.
    pub left_out: u64,
    /// Connections without a SYN in the capture. A port knows those of which it has data.
    pub unopened: u64,
    /// The earliest and the latest time, since 1970; None without packets.
    pub span_ns: Option<(u64, u64)>,
}

impl Replay {
    /// With the last states of at most `max_connections`. `is_guest` judges ends; without it, the opener of each connection
    /// is its guest.
    pub fn new(
        treatment: Treatment,
        max_connections: usize,
        is_guest: Option<Box<IsGuest>>,
    ) -> Self {
        let (place_of, watched, turned, begun, pairs, last_ns, is_full, seen) = Default::default();
        Self {
            treatment,
            max_connections,
            is_guest,
            place_of,
            watched,
            turned,
            begun,
            pairs,
            last_ns,
            is_full,
            seen,
        }
    }

    /// Passes each connection twice, with each of its ends as the guest. Each has two entries in
    /// [`Replayed::connections`], and counts once in all other figures.
    pub fn each_end(mut self) -> Self {
        self.turned = Some(Vec::new());
        self
    }

    /// Passes the next packet through its port, which may change its frame. `observe` is called if it is a
    /// segment of a connection that the port knows.
    ///
    /// # Errors
    /// The packet is the first of the capture whose time runs back, and has been passed; or the first that was
    /// captured at one place too many, and has not.
    pub fn take(
        &mut self,
        packet: &mut Packet,
        observe: &mut dyn FnMut(&Passed),
    ) -> Result<(), Problem> {
        self.seen.packets += 1;
        self.last_ns = packet.time_ns;
        let (first_ns, last_ns) = self.seen.span_ns.unwrap_or((packet.time_ns, packet.time_ns));
        let span_ns = (first_ns.min(packet.time_ns), last_ns.max(packet.time_ns));
        self.seen.span_ns = Some(span_ns);
        tunnel::strip_outer_tags(packet);
        let tunnel = tunnel::open(packet);
        if tunnel.is_some() {
            tunnel::strip_outer_tags(packet);
        }
        let place = Place { interface: packet.interface, device: packet.device, tunnel };
        let Some(index) = self.index_of(place, first_ns) else {
            let is_first = !mem::replace(&mut self.is_full, true);
            let problem = What::Places(PLACES_MAX).at(packet.offset);
            return if is_first { Err(problem) } else { Ok(()) };
        };
        let back_ns = self.watched[index].advance(packet.time_ns);
        if let Some(turned) = &mut self.turned {
            turned[index].advance(packet.time_ns);
        }
        let captured_bytes = packet.frame.len();
        let mut frame = whole(packet);
        self.pass(index, &mut frame, captured_bytes, packet.from_guest, observe);
        packet.frame = frame.bytes;
        if back_ns == 0 {
            return Ok(());
        }
        self.seen.backwards += 1;
        match self.seen.backwards {
            1 => Err(What::Backwards { back_us: back_ns.div_ceil(1000) }.at(packet.offset)),
            _ => Ok(()),
        }
    }

    /// The port of a place; None for more places than a host has.
    fn index_of(&mut self, place: Place, first_ns: u64) -> Option<usize> {
        if let Some(index) = self.place_of.get(&place) {
            return Some(*index);
        }
        let index = self.watched.len();
        if index == PLACES_MAX {
            return None;
        }
        self.place_of.insert(place, index);
        self.seen.places.push(place);
        let watched = || Watched::new(self.treatment.clone(), self.max_connections, first_ns);
        self.watched.push(watched());
        self.turned.iter_mut().for_each(|turned| turned.push(watched()));
        Some(index)
    }

    fn pass(
        &mut self,
        index: usize,
        frame: &mut Frame,
        captured_bytes: usize,
        from_guest: Option<bool>,
        observe: &mut dyn FnMut(&Passed),
    ) {
        let watched = &mut self.watched[index];
        let Some(header) = frame.tcp_header() else {
            watched.count_unread(frame);
            return;
        };
        if captured_bytes < header.end {
            // What is missing of its options would be read as none.
            self.seen.cut += 1;
            return;
        }
        let segment = Segment::read(frame, &header);
        let max = self.max_connections;
        let before = watched.pairs();
        let has_room = self.pairs < 2 * max;
        let by_recording = from_guest.map(|from_guest| {
            let from = segment.from;
            move |end: SocketAddr, _: Mac| (end == from) == from_guest
        });
        let by_recording = by_recording.as_ref().map(|judge| judge as &IsGuest);
        let is_guest = self.is_guest.as_deref().or(by_recording);
        let Some(side) = watched.judge(&segment, is_guest, has_room) else {
            self.seen.others += 1;
            return;
        };
        self.pairs += watched.pairs() - before;
        let begins = side.joins || segment.opens() && !watched.is_opening(&side.key);
        if side.is_left_out || begins && self.begun >= max {
            self.seen.left_out += u64::from(watched.leave_out(&segment));
            return;
        }
        self.seen.segments += 1;
        let again = self.turned.as_mut().map(|turned| {
            let frame = Frame { bytes: frame.bytes.clone(), ..*frame };
            (&mut turned[index], frame)
        });
        let begins = show(watched, index, side, &segment, (&header, frame), observe);
        self.begun += usize::from(begins);
        if let Some((turned, mut frame)) = again {
            show(turned, index, side.turned(), &segment, (&header, &mut frame), observe);
        }
    }

    /// What the packets have shown so far.
    pub fn so_far(&mut self) -> Replayed {
        self.collect(true)
    }

    /// Lets time pass until the last packet, and ends.
    pub fn end(mut self) -> Replayed {
        for watched in self.watched.iter_mut().chain(self.turned.iter_mut().flatten()) {
            watched.advance(self.last_ns);
        }
        self.collect(false)
    }

    fn collect(&mut self, keeps: bool) -> Replayed {
        let mut seen = self.seen.clone();
        for (place, watched) in self.watched.iter_mut().enumerate() {
            seen.unopened += watched.unopened();
            seen.counters.push(watched.counters());
            seen.connections.extend(watched.connections(place, keeps));
        }
        for (place, watched) in self.turned.iter_mut().flatten().enumerate() {
            let turned = watched.connections(place, keeps).into_iter();
            seen.connections.extend(turned.map(|it| Connection { is_turned: true, ..it }));
        }
        seen
    }
}

/// Passes a segment through a port, and shows it there. Does a connection begin with it?
fn show(
    watched: &mut Watched,
    place: usize,
    side: Side,
    segment: &Segment,
    (header, frame): (&TcpHeader, &mut Frame),
    observe: &mut dyn FnMut(&Passed),
) -> bool {
    if side.joins {
        watched.join(side, segment, frame, header);
    }
    let Some(Behind { state, began_ns, begins }) = watched.pass(side, segment, header, frame)
    else {
        return false;
    };
    let (elapsed_ns, now_us) = (watched.elapsed_ns(), watched.now_us());
    let Side { key, from_guest, .. } = side;
    observe(&Passed {
        place,
        elapsed_ns,
        now_us,
        key,
        began_ns,
        from_guest,
        segment: *segment,
        state: &state,
    });
    begins
}
