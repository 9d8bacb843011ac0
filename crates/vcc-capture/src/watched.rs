//! A port with the connections that pass it.

use std::collections::HashMap;
use std::mem;

use foldhash::fast::RandomState;
use vcc_domain::{Counters, Frame, Out, Port, TcpHeader};
use vcc_engine::{FlowKey, FlowState, Stage, sys};
use vcc_net::wire::ETHERTYPE_VLAN;

use crate::clock::{Clock, START_NS};
use crate::connection::{Connection, Passing, Track};
use crate::joining;
use crate::segment::Segment;
use crate::sides::{IsGuest, Side, Sides};
use crate::syn::Syn;
use crate::treatment::Treatment;

/// The payload of a full segment on Ethernet, where the connection is unknown.
pub(crate) const SEGMENT_BYTES: u16 = 1448;
const NS_PER_US: u64 = 1000;

pub(crate) struct Watched {
    port: Port,
    treatment: Treatment,
    clock: Clock,
    /// Until when its deadlines were processed.
    turned_ns: u64,
    sides: Sides,
    tracks: HashMap<FlowKey, Track, RandomState>,
    ended: Vec<Connection>,
    /// The last SYN at a connection that the port takes for live, with whether the guest sent it.
    unanswered: HashMap<FlowKey, (Segment, bool, Frame), RandomState>,
    /// What a port would send besides; in shadow mode nothing.
    out: Out,
}

/// A connection behind a segment.
pub(crate) struct Behind {
    pub state: FlowState,
    /// Since the capture's start.
    pub began_ns: u64,
    /// The segment is its first.
    pub begins: bool,
}

impl Watched {
    pub(crate) fn new(treatment: Treatment, max_flows: usize, epoch_ns: u64) -> Self {
        let mut port = treatment.port(max_flows);
        port.keep_forgotten();
        let (sides, tracks, ended, unanswered, out) = Default::default();
        let clock = Clock::new(epoch_ns);
        Self { port, treatment, clock, turned_ns: 0, sides, tracks, ended, unanswered, out }
    }

    /// Lets time pass until a packet. Returns by how much the packet is too early.
    pub(crate) fn advance(&mut self, time_ns: u64) -> u64 {
        let back_ns = self.clock.advance(time_ns);
        let now_ns = self.clock.now_ns();
        while let Some(due_ns) = self.port.next_deadline_ns().filter(|due_ns| *due_ns <= now_ns) {
            self.turned_ns = due_ns.max(self.turned_ns);
            self.port.advance(self.turned_ns, &mut self.out);
            self.collect(self.turned_ns);
        }
        self.turned_ns = now_ns;
        back_ns
    }

    pub(crate) fn judge(
        &mut self,
        segment: &Segment,
        is_guest: Option<&IsGuest>,
        has_room: bool,
    ) -> Option<Side> {
        let port = &self.port;
        self.sides.judge(segment, is_guest, has_room, |key| is_opening(port, key))
    }

    /// The number of connections of which a segment was seen and is remembered.
    pub(crate) fn pairs(&self) -> usize {
        self.sides.len()
    }

    pub(crate) fn leave_out(&mut self, segment: &Segment) -> bool {
        self.sides.leave_out(segment)
    }

    pub(crate) fn is_opening(&self, key: &FlowKey) -> bool {
        is_opening(&self.port, key)
    }

    /// Counts a frame that the port cannot read.
    pub(crate) fn count_unread(&mut self, frame: &mut Frame) {
        // The direction does not matter to a port that has no flow of it.
        let _ = self.port.to_guest(self.clock.now_ns(), frame, &mut self.out);
    }

    /// Lets the port know a connection without its SYN, whose first segment this is.
    pub(crate) fn join(
        &mut self,
        side: Side,
        segment: &Segment,
        frame: &Frame,
        header: &TcpHeader,
    ) {
        let now_ns = self.clock.now_ns();
        for (mut frame, is_senders) in joining::handshake(frame, header, segment, side.from_opener)
        {
            self.pass_frame(is_senders == side.from_guest, &mut frame);
        }
        self.collect(now_ns);
        if self.port.flow(&side.key).is_some() {
            self.tracks.insert(side.key, Track::begin(now_ns, true));
        }
    }

    /// Passes a segment through the port. None if the port does not know its connection.
    pub(crate) fn pass(
        &mut self,
        side: Side,
        segment: &Segment,
        header: &TcpHeader,
        frame: &mut Frame,
    ) -> Option<Behind> {
        let Side { from_guest, key, .. } = side;
        let now_ns = self.clock.now_ns();
        self.reopen(side, segment);
        let before = self.port.flow(&key).copied();
        if segment.opens() && before.is_some_and(|it| it.stage() >= Stage::Established) {
            let copy = Frame { bytes: frame.bytes.clone(), ..*frame };
            self.unanswered.insert(key, (*segment, from_guest, copy));
        }
        frame.gso_size = gso_size(before.as_ref(), segment.payload_bytes);
        let syn = segment.has(sys::TCP_SYN).then(|| Syn::read(frame, header, segment));
        self.pass_frame(from_guest, frame);
        self.collect(now_ns);
        let mut after = self.port.flow(&key).copied()?;
        let ended = before.filter(|before| {
            segment.opens() && before.stage() >= Stage::Established && after.is_half_open()
        });
        if let Some(ended) = &ended {
            self.end_track(now_ns, key, ended);
        }
        let before = before.filter(|_| ended.is_none()).unwrap_or_default();
        let mut begins = side.joins;
        let track = self.tracks.entry(key).or_insert_with(|| {
            begins = true;
            Track::begin(now_ns, false)
        });
        let passing = Passing { now_ns, segment, syn, from_guest, before: &before, after: &after };
        track.note(self.treatment.params_of(&after), &passing);
        if track.is_joined() {
            hide_windows(&mut after);
        }
        let began_ns = track.began_ns().saturating_sub(START_NS);
        Some(Behind { state: after, began_ns, begins })
    }

    /// The end of the connection before is not in the capture: a port keeps such a connection, and believes
    /// its ends alone. A SYN-ACK of another handshake shows that both ends have begun anew.
    fn reopen(&mut self, side: Side, segment: &Segment) {
        if !segment.accepts() {
            return;
        }
        let Some((syn, from_guest, mut frame)) = self.unanswered.remove(&side.key) else { return };
        if segment.ack != syn.seq.wrapping_add(1) {
            return;
        }
        let Some(last) = self.port.flow(&side.key).copied() else { return };
        let now_ns = self.clock.now_ns();
        self.end_track(now_ns, side.key, &last);
        let reset = vcc_frames::Packet {
            tags: side.key.vlan().map(|id| (ETHERTYPE_VLAN, id)).into_iter().collect(),
            seq: last.snd_nxt,
            flags: sys::TCP_RST as u16,
            ..vcc_frames::Packet::new(side.key.guest(), side.key.peer())
        };
        self.pass_frame(true, &mut Frame::full(reset.frame()));
        self.pass_frame(from_guest, &mut frame);
        self.tracks.insert(side.key, Track::begin(now_ns, false));
    }

    /// The time since the capture's start, on the port's clock.
    pub(crate) fn elapsed_ns(&self) -> u64 {
        self.clock.now_ns().saturating_sub(START_NS)
    }

    /// The time of the states of its connections.
    pub(crate) fn now_us(&self) -> u64 {
        self.clock.now_ns() / NS_PER_US
    }

    fn pass_frame(&mut self, from_guest: bool, frame: &mut Frame) {
        let now_ns = self.clock.now_ns();
        let _ = match from_guest {
            true => self.port.from_guest(now_ns, frame, &mut self.out),
            false => self.port.to_guest(now_ns, frame, &mut self.out).0,
        };
    }

    /// The flows that the port has forgotten since the last call have ended.
    fn collect(&mut self, now_ns: u64) {
        self.out.to_guest.clear();
        self.out.to_fabric.clear();
        for (key, state) in self.port.take_forgotten() {
            self.end_track(now_ns, key, &state);
        }
    }

    fn end_track(&mut self, now_ns: u64, key: FlowKey, state: &FlowState) {
        self.unanswered.remove(&key);
        let Some(track) = self.tracks.remove(&key) else { return };
        self.ended.push(connection(now_ns, key, state, &track));
    }

    pub(crate) fn unopened(&self) -> u64 {
        self.sides.unopened()
    }

    pub(crate) fn counters(&self) -> Counters {
        self.port.counters().clone()
    }

    /// All connections, those that are live behind the others. With `keeps`, those that have ended stay for
    /// the next call.
    pub(crate) fn connections(&mut self, place: usize, keeps: bool) -> Vec<Connection> {
        let now_ns = self.clock.now_ns();
        let mut all = if keeps { self.ended.clone() } else { mem::take(&mut self.ended) };
        all.extend(self.port.flows().filter_map(|(key, state)| {
            Some(connection(now_ns, *key, state, self.tracks.get(key)?))
        }));
        all.iter_mut().for_each(|connection| connection.place = place);
        all
    }
}

/// The payload of each full segment of a frame with this payload; 0 if it is one segment. A sender's device
/// cuts super-segments behind the place of the capture.
fn gso_size(flow: Option<&FlowState>, payload_bytes: u32) -> u16 {
    let flow = flow.filter(|flow| flow.mss_max_bytes != 0);
    let sizes = flow.map(|flow| (flow.mss_bytes, flow.mss_max_bytes));
    let (full_bytes, max_bytes) = sizes.unwrap_or((SEGMENT_BYTES, SEGMENT_BYTES));
    if payload_bytes > max_bytes.into() { full_bytes } else { 0 }
}

/// Its place is that of its port.
fn connection(now_ns: u64, key: FlowKey, state: &FlowState, track: &Track) -> Connection {
    let (mut state, life) = (*state, track.life(START_NS));
    if life.is_joined {
        hide_windows(&mut state);
    }
    Connection { place: 0, is_turned: false, key, state, life, at_us: now_ns / NS_PER_US }
}

/// The scales are unknown.
fn hide_windows(state: &mut FlowState) {
    state.0.flags &= !sys::FLOW_WINDOW_SHOWN;
}

fn is_opening(port: &Port, key: &FlowKey) -> bool {
    port.flow(key).is_some_and(FlowState::is_half_open)
}
