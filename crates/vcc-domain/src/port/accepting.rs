//! A port that answers SYNs in the guest's name (`engine/accept.h`).

use std::collections::VecDeque;
use std::sync::Arc;

use vcc_engine::{FlowKey, FlowState, Segment, half_open_max, sys};

use super::Port;
use super::core::Core;
use crate::empty_segment::Bare;
use crate::frame::{Direction, Frame, Out, Verdict};
use crate::icmp;
use crate::parse::{Parsed, parse, parse_first_fragment};
use crate::snoop::{Accepted, Listener, Numbers, Offsets, Terms, Waits, has_right_sums};
use crate::table::{Entry, FlowId};
use vcc_net::wire::*;

/// A hash of a connection that its peer cannot guess, for initial sequence numbers (RFC 6528, 3).
pub type IsnHash = Arc<dyn Fn(&FlowKey) -> u64 + Send + Sync>;

/// RFC 6528, 3: the clock of initial sequence numbers.
const ISN_TICK_US: u64 = 4;
/// A guest that has not answered a SYN for this long may have closed the port.
const KNOWN_NS: u64 = 600 * 1_000_000_000;
const LISTENERS_MAX: usize = 64;
/// More SYNs at a time than so many, which the guest has not answered, reach it unanswered.
const WAITS_MAX: usize = 256;

/// What a port keeps to accept connections in its guest's name.
#[derive(Clone, Default)]
pub(super) struct Accepting {
    isn_hash: Option<IsnHash>,
    /// Where the guest listens, by its address and port; the last one that answered is the last here.
    listeners: VecDeque<(FlowKey, Listener)>,
    /// Connections that the guest has not answered; some may have ended since.
    waits: Vec<FlowKey>,
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
        self.is_on |= accepted.depends();
        if accepted.waits() {
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
        if self.waits.len() >= most {
            let waits = |key: &FlowKey| {
                core.table.of_key(key).is_some_and(|entry| entry.snooped.accepted.waits())
            };
            self.waits.retain(waits);
        }
        self.waits.len() < most
    }

    /// Adjusts a frame that is about to leave for the guest. False: the guest must not have it, because it
    /// has not answered the SYN.
    fn shows(&self, core: &mut Core, frame: &mut Frame) -> bool {
        let Ok(parsed) = parse(frame, Direction::ToGuest) else {
            adjust_quote(core, frame);
            return true;
        };
        let Some(id) = core.table.find(&parsed.key) else { return true };
        let Some(Entry { snooped, .. }) = core.table.get_mut(id) else { return true };
        let flags = u32::from(parsed.segment.flags);
        match &mut snooped.accepted {
            Accepted::No => true,
            Accepted::Joined(offsets) => {
                offsets.adjust_to_guest(frame, &parsed);
                true
            }
            Accepted::Waits(_) if flags & (sys::TCP_SYN | sys::TCP_RST) != 0 => true,
            Accepted::Waits(waits) => {
                if parsed.segment.payload_bytes == 0 {
                    waits.ack = Some(frame.clone());
                }
                false
            }
            // Its acknowledgement is of a number that the guest does not have.
            Accepted::Ended => {
                let is_reset = flags & sys::TCP_RST != 0;
                if is_reset {
                    *frame = reset(&parsed, parsed.segment.seq, &frame.bytes);
                }
                is_reset || flags & sys::TCP_SYN != 0
            }
        }
    }
}

/// A router quotes the numbers that it has seen.
fn adjust_quote(core: &Core, frame: &mut Frame) {
    let Some(quote) = icmp::too_big(frame) else { return };
    let Some(Entry { snooped, .. }) = core.table.of_key(&quote.key) else { return };
    if let Some(offsets) = snooped.accepted.offsets() {
        quote.set_seq(frame, quote.message.seq.wrapping_sub(offsets.seq));
    }
}

/// A RST to the guest, which it believes by its sequence number alone; `beside`: a frame between the
/// same hosts.
fn reset(parsed: &Parsed, seq: u32, beside: &[u8]) -> Frame {
    let mut neighbour = sys::vcc_neighbour::default();
    neighbour.guest_mac.copy_from_slice(&beside[..MAC_BYTES]);
    neighbour.next_hop_mac.copy_from_slice(&beside[MAC_BYTES..2 * MAC_BYTES]);
    let flags = sys::TCP_RST;
    let bare =
        Bare { direction: Direction::ToGuest, seq, ack: 0, flags, window: 0, timestamps: None };
    bare.frame(&parsed.key, &neighbour)
}

/// The RST that ends the guest's part of a handshake that it has not answered yet; None: there is none.
pub(super) fn end_of_handshake(Entry { snooped, .. }: &Entry) -> Option<Frame> {
    let Accepted::Waits(waits) = &snooped.accepted else { return None };
    let parsed = parse(&waits.syn, Direction::ToGuest).ok()?;
    Some(reset(&parsed, snooped.snoop.0.irs_nxt, &waits.syn.bytes))
}

/// Is it the SYN or SYN-ACK of a connection that the port has accepted, once more?
pub(super) fn repeats_handshake(core: &Core, id: FlowId, segment: &Segment) -> bool {
    core.table.get(id).is_some_and(|Entry { state: flow, snooped, .. }| {
        let begins_with = match u32::from(segment.flags) & sys::TCP_ACK == 0 {
            true => snooped.snoop.0.irs_nxt.wrapping_sub(1),
            false => flow.iss,
        };
        snooped.accepted.depends() && segment.seq == begins_with
    })
}

/// Has the peer's SYN begun a connection that the guest has not answered?
fn is_unanswered(flow: &FlowState) -> bool {
    !flow.has(sys::FLOW_GUEST_OPENED) && u32::from(flow.stage) < sys::STAGE_ESTABLISHED
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
        let Some(Entry { key, state: flow, snooped, .. }) = self.core.table.get_mut(id) else {
            return;
        };
        let key = *key;
        if u32::from(parsed.segment.flags) & sys::TCP_ACK != 0 || !is_unanswered(flow) {
            return;
        }
        let terms = Terms::read(syn, &parsed);
        snooped.syn_shape = terms.map(Terms::shape);
        let receive = u32::from(self.core.treatments.params_of(flow).0.receive);
        let accepts = receive == sys::RECEIVE_ACCEPT && !self.snooping.is_withheld();
        let is_same = parsed.segment.seq.wrapping_add(1) == snooped.snoop.0.irs_nxt;
        let is_again = snooped.accepted.waits() && is_same;
        if snooped.accepted.offsets().is_some() {
            // The guest has answered it, and does so again.
            return;
        }
        if !is_again {
            snooped.accepted = Accepted::No;
        }
        let (iss, tsval) = (flow.iss, snooped.tsval);
        let Some(shape) = snooped.syn_shape.filter(|_| accepts) else { return };
        let Some(hash) = self.accepting.isn_hash.clone() else { return };
        if !has_right_sums(syn, &parsed) || !(is_again || self.accepting.has_room(&self.core)) {
            return;
        }
        let Some(listener) = self.accepting.find(&self.core, &key, shape) else { return };
        let hash = hash(&key);
        let numbers = Numbers {
            seq: if is_again {
                iss
            } else {
                (hash as u32).wrapping_add((now_us / ISN_TICK_US) as u32)
            },
            ack: parsed.segment.seq.wrapping_add(1),
            tsval: if is_again { tsval } else { (hash >> 32) as u32 },
            tsecr: parsed.segment.tsval,
        };
        let terms = listener.terms;
        let Some(mut answer) = listener.answer(&key, syn, numbers) else { return };
        let Ok(mut parsed) = parse(&answer, Direction::FromGuest) else { return };
        parsed.segment.now_us = now_us;
        let to_guest = &mut out.to_guest;
        self.snooping.absorb(&mut self.core, id, (&mut answer, &mut parsed), to_guest);
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
                if u32::from(flow.stage) != sys::STAGE_CLOSED {
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
        self.snooping.note_heard(&self.core);
        let Some(Entry { state: flow, snooped, .. }) = self.core.table.get_mut(id) else {
            return Verdict::Drop;
        };
        let Accepted::Waits(waits) = &mut snooped.accepted else { return Verdict::Drop };
        let (flags, terms) = (u32::from(parsed.segment.flags), waits.terms);
        let refuses = flags & sys::TCP_RST != 0 && parsed.segment.ack == snooped.snoop.0.irs_nxt;
        if !refuses && !snooped.snoop.accept_joins(&parsed.segment) {
            // A connection before this one: its end is as old as the peer's (RFC 9293, 3.10.7.3).
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
        added.retain_mut(|frame| self.accepting.shows(&mut self.core, frame));
        out.to_guest.append(&mut added);
    }

    /// The verdict for a frame that would pass to the guest, which is adjusted.
    #[inline]
    pub(super) fn show_passing(&mut self, verdict: Verdict, frame: &mut Frame) -> Verdict {
        let hides = self.accepting.is_on()
            && verdict == Verdict::Pass
            && !self.accepting.shows(&mut self.core, frame);
        if hides { Verdict::Held } else { verdict }
    }

    /// The first fragment of a segment of the guest.
    pub(super) fn adjust_fragment(&self, frame: &mut Frame) {
        if !self.accepting.is_on() {
            return;
        }
        let Some(mut parsed) = parse_first_fragment(frame) else { return };
        let Some(Entry { snooped, .. }) = self.core.table.of_key(&parsed.key) else { return };
        if let Some(offsets) = snooped.accepted.offsets() {
            offsets.adjust_from_guest(frame, &mut parsed);
        }
    }

    /// A frame of the guest's ring, with the numbers that the peer knows.
    pub(super) fn restore(&self, frame: &mut Frame) {
        if !self.accepting.is_on() {
            return;
        }
        let Ok(parsed) = parse(frame, Direction::ToGuest) else { return };
        let Some(Entry { snooped, .. }) = self.core.table.of_key(&parsed.key) else { return };
        if let Some(offsets) = snooped.accepted.offsets() {
            offsets.restore_to_guest(frame, &parsed);
        }
    }
}

/// Answers a segment of the guest by a RST, as a peer without this connection does (RFC 9293, 3.10.7.1).
fn refuse(frame: &Frame, parsed: &Parsed, out: &mut Out) {
    let mut beside = [0; 2 * MAC_BYTES];
    beside[..MAC_BYTES].copy_from_slice(&frame.bytes[MAC_BYTES..2 * MAC_BYTES]);
    beside[MAC_BYTES..].copy_from_slice(&frame.bytes[..MAC_BYTES]);
    out.to_guest.push(reset(parsed, parsed.segment.ack, &beside));
}
