//! A port that answers SYNs in the guest's name (`engine/accept.h`).

use std::collections::VecDeque;
use std::sync::Arc;

use vcc_engine::{FlowKey, FlowState, Segment, half_open_max, sys};

use super::Port;
use super::core::Core;
use crate::empty_segment::Bare;
use crate::frame::{Direction, Frame, Out, Verdict};
use crate::icmp;
use crate::neighbours;
use crate::parse::{Parsed, parse, parse_first_fragment};
use crate::snoop::{Accepted, Listener, Numbers, Offsets, Snooped, Terms, Waits, has_right_sums};
use crate::table::{Entry, FlowId};

/// A hash of a connection that its peer cannot guess, for initial sequence numbers (RFC 6528, 3).
pub type IsnHash = Arc<dyn Fn(&FlowKey) -> u64 + Send + Sync>;

/// RFC 6528, 3: the clock of initial sequence numbers.
const ISN_TICK_US: u64 = 4;
/// A guest that has not answered a SYN for this long may have closed the port.
const KNOWN_NS: u64 = 600 * 1_000_000_000;
const LISTENERS_MAX: usize = 64;
/// More SYNs at a time than so many, of which the guest's answer or the peer's ACK is outstanding, reach the
/// guest unanswered.
const WAITS_MAX: usize = 256;
/// While there are so many, whether some have ended is looked up no more often.
const LOOK_AGAIN_NS: u64 = 100_000_000;

/// What a port keeps to accept connections in its guest's name.
#[derive(Clone, Default)]
pub(super) struct Accepting {
    isn_hash: Option<IsnHash>,
    /// Where the guest listens, by its address and port; the last one that answered is the last here.
    listeners: VecDeque<(FlowKey, Listener)>,
    /// Connections that the guest or the peer has not answered; some may have ended since.
    waits: Vec<FlowKey>,
    /// When there may be room for others again.
    room_ns: u64,
    /// The treatment has had `receive = "accept"`.
    is_on: bool,
}

/// The guest's end alone: all its connections to one port have the same.
fn listener_of(key: &FlowKey) -> FlowKey {
    let anyone = match key.guest().is_ipv4() {
        true => ([0, 0, 0, 0], 0).into(),
        false => ([0; 16], 0).into(),
    };
    FlowKey::new(key.guest(), anyone, key.vlan())
}

impl Accepting {
    /// May the guest have numbers of its own on any connection?
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// The treatments may have changed.
    pub(super) fn note_treatments(&mut self, core: &Core) {
        self.is_on |=
            core.treatments.any(|params| u32::from(params.0.receive) == sys::RECEIVE_ACCEPT);
    }

    /// A connection has come with the guest.
    pub(super) fn arrive(&mut self, key: FlowKey, accepted: &Accepted) {
        self.is_on |= accepted.is_live();
        if accepted.is_waiting() {
            self.waits.push(key);
        }
    }

    fn note(&mut self, key: &FlowKey, listener: Listener) {
        self.forget(key, listener.shape);
        if self.listeners.len() >= LISTENERS_MAX {
            self.listeners.pop_front();
        }
        self.listeners.push_back((listener_of(key), listener));
    }

    fn forget(&mut self, key: &FlowKey, shape: (u16, u16)) {
        let own = listener_of(key);
        self.listeners.retain(|(other, listener)| *other != own || listener.shape != shape);
    }

    fn find(&self, core: &Core, key: &FlowKey, shape: (u16, u16)) -> Option<&Listener> {
        let own = listener_of(key);
        let its = |(other, listener): &&(FlowKey, Listener)| {
            *other == own && listener.shape == shape && core.now_ns - listener.seen_ns < KNOWN_NS
        };
        self.listeners.iter().find(its).map(|(_, listener)| listener)
    }

    fn has_room(&mut self, core: &Core) -> bool {
        let max_flows = core.table.max_flows().try_into().unwrap_or(u32::MAX);
        let most = WAITS_MAX.min(half_open_max(max_flows) as usize);
        if self.waits.len() >= most && self.room_ns <= core.now_ns {
            let waits = |Entry { state: flow, snooped, .. }: &Entry| {
                let is_open = u32::from(flow.stage) >= sys::STAGE_ESTABLISHED;
                snooped.accepted.is_waiting() || (snooped.accepted.is_live() && !is_open)
            };
            self.waits.retain(|key| core.table.of_key(key).is_some_and(waits));
            self.room_ns = core.now_ns + LOOK_AGAIN_NS;
        }
        self.waits.len() < most
    }

    /// Adjusts a frame that is about to leave for the guest.
    fn show(&self, core: &mut Core, frame: &mut Frame) -> Shows {
        let Ok(parsed) = parse(frame, Direction::ToGuest) else {
            return adjust_part(core, frame);
        };
        let Some(id) = core.table.find(&parsed.key) else { return Shows::AsItIs };
        let Some(Entry { state: flow, snooped, .. }) = core.table.get_mut(id) else {
            return Shows::AsItIs;
        };
        let flags = u32::from(parsed.segment.flags);
        match &mut snooped.accepted {
            Accepted::No => Shows::AsItIs,
            Accepted::Joined(offsets) => {
                offsets.adjust_to_guest(frame, &parsed);
                Shows::Changed
            }
            // Before the peer has acknowledged the port's number, it may be another connection's.
            Accepted::Waits(_)
                if flags & (sys::TCP_SYN | sys::TCP_RST) != 0
                    || u32::from(flow.stage) < sys::STAGE_ESTABLISHED =>
            {
                Shows::AsItIs
            }
            Accepted::Waits(waits) => {
                let ends = parsed.segment.payload_bytes == 0
                    && parsed.segment.ack == flow.snd_una
                    && has_right_sums(frame, &parsed);
                if ends {
                    waits.ack = Some(frame.clone());
                }
                Shows::Not
            }
            // Its acknowledgement is of a number that the guest does not have.
            Accepted::Ended if flags & sys::TCP_RST != 0 => {
                *frame = reset(&parsed.key, parsed.segment.seq, Direction::ToGuest, frame);
                Shows::Changed
            }
            Accepted::Ended if flags & sys::TCP_SYN != 0 => Shows::AsItIs,
            Accepted::Ended => Shows::Not,
        }
    }
}

/// What becomes of a frame to the guest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    AsItIs,
    Changed,
    /// The guest has not answered the SYN.
    Not,
}

/// A router quotes the numbers that it has seen, and a first fragment has a header.
fn adjust_part(core: &Core, frame: &mut Frame) -> Shows {
    if let Some(parsed) = parse_first_fragment(frame, Direction::ToGuest) {
        if let Some(offsets) = offsets(core, &parsed.key) {
            offsets.adjust_to_guest(frame, &parsed);
        }
        return Shows::Changed;
    }
    if let Some(quote) = icmp::too_big(frame)
        && let Some(offsets) = offsets(core, &quote.key)
    {
        quote.set_seq(frame, quote.message.seq.wrapping_sub(offsets.seq));
    }
    Shows::Changed
}

fn offsets(core: &Core, key: &FlowKey) -> Option<Offsets> {
    core.table.of_key(key)?.snooped.accepted.offsets()
}

/// A RST to the guest, on the link of a frame in this direction.
fn reset(key: &FlowKey, seq: u32, direction: Direction, frame: &Frame) -> Frame {
    Bare::reset(Direction::ToGuest, seq).frame(key, &neighbours::between(direction, &frame.bytes))
}

/// The RST that ends the guest's part of a handshake that it has not answered yet; None: there is none.
pub(super) fn end_of_handshake(Entry { key, snooped, .. }: &Entry) -> Option<Frame> {
    let Accepted::Waits(waits) = &snooped.accepted else { return None };
    Some(reset(key, snooped.snoop.0.irs_nxt, Direction::ToGuest, &waits.syn))
}

/// Is it the SYN or SYN-ACK of a connection that the port has accepted, once more?
pub(super) fn repeats_handshake(core: &Core, id: FlowId, segment: &Segment) -> bool {
    core.table.get(id).is_some_and(|Entry { state: flow, snooped, .. }| {
        let begins_with = match u32::from(segment.flags) & sys::TCP_ACK == 0 {
            true => snooped.snoop.0.irs_nxt.wrapping_sub(1),
            false => flow.iss,
        };
        snooped.accepted.is_live() && segment.seq == begins_with
    })
}

/// Has the peer begun a connection, of which one end has not answered?
fn is_half_open(flow: &FlowState) -> bool {
    !flow.has(sys::FLOW_GUEST_OPENED) && u32::from(flow.stage) < sys::STAGE_ESTABLISHED
}

/// The peer's SYN. If it is repeated in another shape, the guest may answer either.
fn note_shape(flow: &FlowState, snooped: &mut Snooped, seq: u32, shape: Option<(u16, u16)>) {
    let is_repeated = snooped.syn_seq == seq && flow.has(sys::FLOW_SYN_SEEN_PEER);
    let is_same = !is_repeated || snooped.syn_shape.is_none() || snooped.syn_shape == shape;
    let is_known = !is_repeated || snooped.syn_shape.is_some();
    snooped.syn_shape = shape.filter(|_| is_same && is_known);
    snooped.syn_seq = seq;
}

impl Port {
    /// From now on, the port accepts connections in the guest's name where `receive` is `accept`. Without
    /// a hash, `accept` is `buffer`.
    pub fn set_isn_hash(&mut self, hash: IsnHash) {
        self.accepting.isn_hash = Some(hash);
    }

    /// A SYN passes to the guest, which is shown it as it is. If the guest has answered others like it,
    /// the port answers this one.
    pub(super) fn accept(&mut self, id: FlowId, syn: &Frame, out: &mut Out) {
        let (now_ns, now_us) = (self.core.now_ns, self.core.now_us());
        let Ok(parsed) = parse(syn, Direction::ToGuest) else { return };
        let depends = self.core.table.get(id).is_some_and(Entry::depends);
        let Some(Entry { key, state: flow, snooped, .. }) = self.core.table.get_mut(id) else {
            return;
        };
        let (key, seq) = (*key, parsed.segment.seq);
        if u32::from(parsed.segment.flags) & sys::TCP_ACK != 0 || !is_half_open(flow) {
            return;
        }
        let shape = Terms::read(syn, &parsed).map(Terms::shape);
        let is_again = snooped.accepted.is_waiting();
        if snooped.accepted.offsets().is_some() && depends {
            // The guest has answered it, and does so again.
            return;
        }
        if is_again && shape != snooped.syn_shape {
            return;
        }
        if !is_again {
            snooped.accepted = Accepted::No;
            note_shape(flow, snooped, seq, shape);
        }
        // An answer of the guest's own is on its way.
        let is_answered = flow.has(sys::FLOW_SYN_SEEN_GUEST) && !is_again;
        let receive = u32::from(self.core.treatments.params_of(flow).0.receive);
        let accepts = receive == sys::RECEIVE_ACCEPT && !self.snooping.is_withheld();
        let (iss, tsval) = (flow.iss, snooped.tsval);
        let Some(shape) = snooped.syn_shape.filter(|_| accepts && !is_answered) else { return };
        let Some(hash) = self.accepting.isn_hash.clone() else { return };
        if !(is_again || self.accepting.has_room(&self.core)) {
            return;
        }
        let Some(listener) = self.accepting.find(&self.core, &key, shape) else { return };
        if !listener.is_for_it(syn, &parsed) {
            return;
        }
        let hash = hash(&key);
        let isn = (hash as u32).wrapping_add((now_us / ISN_TICK_US) as u32);
        let numbers = Numbers {
            seq: if is_again { iss } else { isn },
            ack: seq.wrapping_add(1),
            tsval: if is_again { tsval } else { (hash >> 32) as u32 },
            tsecr: parsed.segment.tsval,
        };
        let terms = listener.terms;
        let Some(mut answer) = listener.answer(&key, syn, numbers) else { return };
        let Ok(mut parsed) = parse(&answer, Direction::FromGuest) else { return };
        parsed.segment.now_us = now_us;
        // The guest itself has sent nothing.
        let heard_ns = self.snooping.heard_ns();
        let to_guest = &mut out.to_guest;
        self.snooping.absorb(&mut self.core, id, (&mut answer, &mut parsed), to_guest);
        self.snooping.set_heard_ns(heard_ns);
        self.split.note_answer(&key, &parsed.segment);
        let place = out.to_fabric.len();
        if self.leave(id, &mut answer, &parsed, out) == Verdict::Pass {
            out.to_fabric.insert(place, answer);
        }
        let Some(Entry { snooped, .. }) = self.core.table.get_mut(id) else { return };
        if is_again || snooped.snoop.0.begun == 0 {
            return;
        }
        snooped.snoop.accept_begin();
        snooped.accepted = Accepted::Waits(Box::new(Waits::new(now_ns, syn.clone(), terms)));
        self.accepting.waits.push(key);
        // It must not give way to others without a word.
        self.core.table.end_handshake(id);
        self.core.counters.count(sys::COUNT_ACCEPTED);
        self.snooping.set_timer(&mut self.core, id);
    }

    /// Is it a SYN of another connection into one that was accepted, and that an end has not answered yet? It
    /// may be forged, so it is answered with an ACK: a peer that has begun anew resets the old one (RFC 9293,
    /// 3.10.7.4; RFC 5961, 4).
    pub(super) fn challenges(&mut self, id: FlowId, segment: &Segment, out: &mut Out) -> bool {
        let Some(Entry { state: flow, snooped, .. }) = self.core.table.get(id) else {
            return false;
        };
        let is_syn = u32::from(segment.flags) & (sys::TCP_SYN | sys::TCP_ACK) == sys::TCP_SYN;
        let is_pending =
            snooped.accepted.is_waiting() || (snooped.accepted.is_live() && is_half_open(flow));
        let is_same = segment.seq.wrapping_add(1) == snooped.snoop.0.irs_nxt;
        let is_other = is_syn && is_pending && !is_same;
        if is_other {
            self.answer(id, out);
        }
        is_other
    }

    /// A segment of the guest, before anything else reads it: gives it the numbers that the peer knows.
    /// Some: it goes no further.
    pub(super) fn adjust_from_guest(
        &mut self,
        id: FlowId,
        (frame, parsed): (&mut Frame, &mut Parsed),
        out: &mut Out,
    ) -> Option<Verdict> {
        let both = (sys::TCP_SYN | sys::TCP_ACK) as u16;
        let Entry { state: flow, snooped, .. } = self.core.table.get_mut(id)?;
        let is_answer = parsed.segment.flags & both == both;
        match &snooped.accepted {
            Accepted::No => {
                if is_answer {
                    self.note_listener(id, frame, parsed);
                }
                None
            }
            Accepted::Joined(offsets) => {
                let is_syn = u32::from(parsed.segment.flags) & sys::TCP_SYN != 0;
                let is_again = parsed.segment.seq.wrapping_add(offsets.seq) == flow.iss;
                // Another connection has the guest's own numbers.
                if !is_syn || (is_answer && is_again) {
                    offsets.adjust_from_guest(frame, parsed);
                }
                None
            }
            Accepted::Waits(_) => Some(self.hear_waiting(id, frame, parsed, out)),
            Accepted::Ended => {
                let begins = parsed.segment.flags & both == sys::TCP_SYN as u16;
                if begins || u32::from(flow.stage) != sys::STAGE_CLOSED {
                    snooped.accepted = Accepted::No;
                    return None;
                }
                refuse(frame, parsed, out);
                Some(Verdict::Drop)
            }
        }
    }

    /// The guest answers a SYN by itself: it may answer others like it in the same way.
    fn note_listener(&mut self, id: FlowId, frame: &Frame, parsed: &Parsed) {
        let Some(Entry { key, state: flow, snooped, .. }) = self.core.table.get(id) else { return };
        let receive = u32::from(self.core.treatments.params_of(flow).0.receive);
        let Some(shape) = snooped.syn_shape.filter(|_| receive == sys::RECEIVE_ACCEPT) else {
            return;
        };
        match Listener::read(self.core.now_ns, shape, frame, parsed) {
            Some(listener) => self.accepting.note(key, listener),
            None => self.accepting.forget(key, shape),
        }
    }

    /// The guest sends something on a connection that waits for its answer to the SYN.
    fn hear_waiting(
        &mut self,
        id: FlowId,
        frame: &Frame,
        parsed: &Parsed,
        out: &mut Out,
    ) -> Verdict {
        self.snooping.set_heard_ns(self.core.now_ns);
        let Some(Entry { state: flow, snooped, .. }) = self.core.table.get_mut(id) else {
            return Verdict::Drop;
        };
        let Accepted::Waits(waits) = &mut snooped.accepted else { return Verdict::Drop };
        let (flags, terms) = (u32::from(parsed.segment.flags), waits.terms);
        let refuses = flags & sys::TCP_RST != 0 && parsed.segment.ack == snooped.snoop.0.irs_nxt;
        if !refuses && !snooped.snoop.accept_joins(&parsed.segment) {
            let is_old = flags & sys::TCP_ACK != 0 && flags & (sys::TCP_RST | sys::TCP_SYN) == 0;
            if is_old && is_half_open(flow) {
                // The SYN was forged, or the guest has a connection from before it: its peer decides.
                self.forget(id);
                return Verdict::Pass;
            }
            // The peer has acknowledged the port's number, so it has no other connection (RFC 9293,
            // 3.10.7.1).
            if flags & sys::TCP_ACK != 0 && flags & sys::TCP_RST == 0 {
                refuse(frame, parsed, out);
            }
            return Verdict::Drop;
        }
        if refuses || Terms::read(frame, parsed) != Some(terms) {
            self.break_accepted(id, out);
            return Verdict::Drop;
        }
        let offsets = Offsets {
            seq: flow.iss.wrapping_sub(parsed.segment.seq),
            tsval: snooped.tsval.wrapping_sub(parsed.tsval().unwrap_or(0)),
        };
        let ack = waits.ack.take();
        snooped.accepted = Accepted::Joined(offsets);
        self.note_listener(id, frame, parsed);
        out.to_guest.extend(ack);
        self.give(id, out);
        self.split.record(&mut self.core, id);
        self.snooping.set_timer(&mut self.core, id);
        Verdict::Held
    }

    /// The guest does not answer the SYN, or not as the port has: both ends see the end (law 16).
    fn break_accepted(&mut self, id: FlowId, out: &mut Out) {
        let Some(Entry { key, snooped, .. }) = self.core.table.get(id) else { return };
        if let Some(shape) = snooped.syn_shape {
            self.accepting.forget(key, shape);
        }
        self.core.counters.count(sys::COUNT_PROMISE_BROKEN);
        self.break_promise(id, out);
        if let Some(Entry { snooped, .. }) = self.core.table.get_mut(id) {
            snooped.accepted = Accepted::Ended;
        }
    }

    /// Ends accepted connections that the peer has not acknowledged yet.
    pub(super) fn break_handshakes(&mut self, out: &mut Out) {
        if !self.accepting.is_on() {
            return;
        }
        for id in self.core.table.ids() {
            if self.core.table.get(id).is_some_and(|it| it.depends() && is_half_open(&it.state)) {
                self.break_promise(id, out);
            }
        }
    }

    /// The timer of a connection that waits for the guest's answer: the SYN again, or the end.
    pub(super) fn advance_accepted(&mut self, id: FlowId, out: &mut Out) {
        let (now_ns, heard_ns) = (self.core.now_ns, self.snooping.heard_ns());
        let Some(Entry { snooped, .. }) = self.core.table.get_mut(id) else { return };
        let Accepted::Waits(waits) = &mut snooped.accepted else { return };
        if waits.is_over(now_ns) {
            self.break_accepted(id, out);
        } else if waits.due_ns() <= now_ns {
            // A guest that has not run since has the last one in its ring.
            let has_run = heard_ns > waits.sent_ns;
            waits.sent_ns = now_ns;
            waits.times += u32::from(has_run);
            out.to_guest.extend(has_run.then(|| waits.syn.clone()));
        }
    }

    /// Adjusts what has been added to the frames for the guest since there were `from`.
    #[inline]
    pub(super) fn show(&mut self, from: usize, out: &mut Out) {
        if self.accepting.is_on() && out.to_guest.len() > from {
            self.show_all(from, out);
        }
    }

    #[cold]
    fn show_all(&mut self, from: usize, out: &mut Out) {
        let mut added = out.to_guest.split_off(from);
        added.retain_mut(|frame| self.accepting.show(&mut self.core, frame) != Shows::Not);
        out.to_guest.append(&mut added);
    }

    /// The verdict for a frame that would pass to the guest, which is adjusted: is it the same as before?
    #[inline]
    pub(super) fn show_passing(&mut self, verdict: Verdict, frame: &mut Frame) -> (Verdict, bool) {
        if !self.accepting.is_on() || verdict != Verdict::Pass {
            return (verdict, true);
        }
        match self.accepting.show(&mut self.core, frame) {
            Shows::AsItIs => (verdict, true),
            Shows::Changed => (verdict, false),
            Shows::Not => (Verdict::Held, false),
        }
    }

    /// The first fragment of a segment of the guest.
    pub(super) fn adjust_fragment(&self, frame: &mut Frame) {
        if !self.accepting.is_on() {
            return;
        }
        let Some(mut parsed) = parse_first_fragment(frame, Direction::FromGuest) else { return };
        if let Some(offsets) = offsets(&self.core, &parsed.key) {
            offsets.adjust_from_guest(frame, &mut parsed);
        }
    }

    /// A frame of the guest's ring, with the numbers that the peer knows.
    pub(super) fn restore(&self, frame: &mut Frame) {
        if !self.accepting.is_on() {
            return;
        }
        let Ok(parsed) = parse(frame, Direction::ToGuest) else { return };
        if let Some(offsets) = offsets(&self.core, &parsed.key) {
            offsets.restore_to_guest(frame, &parsed);
        }
    }
}

/// Answers a segment of the guest by a RST, as a peer without this connection does (RFC 9293, 3.10.7.1).
fn refuse(frame: &Frame, parsed: &Parsed, out: &mut Out) {
    let reset = reset(&parsed.key, parsed.segment.ack, Direction::FromGuest, frame);
    out.to_guest.push(reset);
}

#[cfg(test)]
mod tests;
