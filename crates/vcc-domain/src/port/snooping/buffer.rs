//! Data that the port stores for a guest that has no room for it yet (`engine/receive_buffer.h`).

use vcc_engine::sys;

use super::{
    BEHIND_HOLES_MAX_BYTES, COPIES_MAX_BYTES, DELAYED_ACK_NS, Snooping, cover, move_to, note_sender,
};
use crate::frame::Frame;
use crate::hold::strip_sack;
use crate::parse::Parsed;
use crate::port::core::Core;
use crate::receipt::is_of;
use crate::snoop::{is_readable, is_reset, moved, renewed};
use crate::table::{Entry, FlowId};
use vcc_net::seq::after;

/// Room is reported with each frame.
const TURNS_IN_A_SMALL_RING: usize = 4;

/// What the guest has been shown of its own data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::port) struct Shown {
    ack: u32,
    window: u16,
    right_edge: u32,
}

/// What becomes of a segment that the engine lets pass to the guest.
pub(in crate::port) enum Arrives {
    Passes,
    /// It passes, at another sequence number and without data.
    Moved,
    /// The port has taken it.
    Taken {
        /// It reaches the guest without its data.
        empty: Option<Frame>,
        answers: bool,
        /// Its data is stored, and may be promised.
        is_kept: bool,
    },
}

impl Snooping {
    pub(in crate::port) fn shown(core: &Core, id: FlowId) -> Option<Shown> {
        let Entry { state: flow, held, .. } = core.table.get(id)?;
        let ack = held.hold.split_ack(flow.snd_una);
        Some(Shown { ack, window: flow.window_shown, right_edge: flow.right_edge })
    }

    /// May data of the flow have to wait for the guest?
    #[inline]
    pub(in crate::port) fn stores(&self, core: &Core, id: FlowId) -> bool {
        if !self.is_on {
            return false;
        }
        let Some(Entry { state: flow, snooped, .. }) = core.table.get(id) else { return false };
        let receive = u32::from(core.treatments.params_of(flow).0.receive);
        let may_store = receive >= sys::RECEIVE_BUFFER && !self.is_withheld;
        snooped.snoop.0.begun != 0 && (may_store || snooped.snoop.has_stored())
    }

    /// The guest's next sequence number, where it believes a RST of its peer; None: the peer's is the
    /// same.
    pub(in crate::port) fn reset_seq(&self, core: &Core, id: FlowId, flags: u16) -> Option<u32> {
        if !self.is_on || u32::from(flags) & sys::TCP_RST == 0 {
            return None;
        }
        let Entry { snooped, .. } = core.table.get(id)?;
        snooped.snoop.has_stored().then(|| snooped.snoop.given_nxt())
    }

    /// A segment that the guest accepts is about to pass to it. `before`: what the guest had been shown.
    pub(in crate::port) fn arrives(
        &mut self,
        core: &mut Core,
        id: FlowId,
        (frame, parsed): (&mut Frame, &mut Parsed),
        before: Option<Shown>,
    ) -> Arrives {
        let shown = Self::shown(core, id);
        let now_ns = core.now_ns;
        let Some(Entry { key, state: flow, held, snooped, .. }) = core.table.get_mut(id) else {
            return Arrives::Passes;
        };
        let treated = self.treated(core.treatments.params_of(flow));
        let params = treated.params();
        let has_stored = snooped.snoop.has_stored();
        debug_assert!(is_of(parsed, frame), "what was read is the frame's");
        let segment = &parsed.segment;
        let (seq, payload_bytes) = (segment.seq, segment.payload_bytes);
        let (flags, options) = (u32::from(segment.flags), u32::from(segment.options));
        let (stamp, sent) = (parsed.tsval(), held.hold.split_ack(flow.snd_nxt));
        let room = self.room_for(snooped, params);
        let (given, ts_recent) = (snooped.snoop.given_nxt(), snooped.snoop.0.ts_recent);
        let owed = snooped.snoop.is_promise_due();
        let is_behind_hole = after(seq, snooped.snoop.0.ring_nxt);
        let most_bytes = if is_behind_hole { BEHIND_HOLES_MAX_BYTES } else { COPIES_MAX_BYTES };
        let has_space = self.copied_bytes < most_bytes;
        let is_readable = is_readable(frame, parsed, &snooped.headers);
        let (snoop, can_store) = (&mut snooped.snoop, is_readable && has_space);
        let received = flow.receive(snoop, params, &room, segment, sent, stamp, can_store);
        let (mut way, stored) = received;
        let is_fin = payload_bytes == 0 && flags & sys::TCP_FIN != 0;
        if snooped.accepted.is_waiting() && is_fin && way == sys::WAY_PASS {
            way = sys::WAY_FIN;
        }
        if way == sys::WAY_PASS {
            // The guest takes its timestamp, so what follows has none before.
            if let Some(tsval) = stamp.filter(|tsval| has_stored && after(*tsval, ts_recent)) {
                snooped.snoop.0.ts_recent = tsval;
            }
            self.sharing.take_segs(segment);
            return Arrives::Passes;
        }
        if !is_readable {
            return Arrives::Passes;
        }
        if way == sys::WAY_MOVED {
            *frame = moved(frame, given, ts_recent);
            return Arrives::Moved;
        }
        let has_news = before != shown || options & sys::OPT_SACK != 0 || flags & sys::TCP_ECE != 0;
        let empty = has_news.then(|| moved(frame, given, ts_recent));
        if way != sys::WAY_STORE {
            if way == sys::WAY_FIN {
                snooped.fin = Some((seq, frame.take_to_keep()));
            }
            return Arrives::Taken { empty, answers: way == sys::WAY_ANSWER, is_kept: false };
        }
        if !has_space {
            core.counters.count(sys::COUNT_DROPPED);
            return Arrives::Taken { empty, answers: true, is_kept: false };
        }
        let mut answers = u32::from(stored.answer) == sys::ANSWER_NOW;
        if stored.keep != 0 {
            strip_sack(frame, parsed);
            let kept = Frame { bytes: std::mem::take(&mut frame.bytes), ..*frame };
            self.keep(snooped, kept, parsed);
            snooped.note_stored();
            if is_behind_hole {
                snooped.note_behind(seq, seq.wrapping_add(payload_bytes));
            }
            note_sender(&mut self.sharing, now_ns, key, snooped, &parsed.segment);
            answers |= cover(flow, snooped, params);
        }
        let _ = snooped.note_promise(now_ns, owed);
        let is_later = u32::from(stored.answer) == sys::ANSWER_LATER && !answers;
        if is_later && snooped.answer_ns.is_none() {
            snooped.answer_ns = Some(now_ns + DELAYED_ACK_NS);
        }
        Arrives::Taken { empty, answers, is_kept: stored.keep != 0 }
    }

    /// Gives the guest what its window and its ring admit of what is stored, and a FIN behind all of it.
    pub(in crate::port) fn give(&mut self, core: &mut Core, id: FlowId, to_guest: &mut Vec<Frame>) {
        let others = self.starved.len() as u32;
        let now_ns = core.now_ns;
        let Some(Entry { key, state: flow, held, snooped, .. }) = core.table.get_mut(id) else {
            return;
        };
        let has_some = snooped.snoop.has_stored() || snooped.fin.is_some();
        if is_reset(flow) || !has_some || snooped.accepted.is_waiting() {
            return;
        }
        let is_under_way = |snooped: &crate::snoop::Snooped| {
            snooped.snoop.given_nxt() != snooped.snoop.0.guest_ack
        };
        // Those that wait have turns.
        let open_segs = self.sharing.open_segs(&snooped.share, is_under_way(snooped));
        if open_segs == 0 && snooped.turn.is_some() && snooped.snoop.has_stored() {
            return;
        }
        let mut turn_segs = if others > 0 { open_segs.div_ceil(others + 1) } else { open_segs };
        let current = snooped.current(flow, &held.hold);
        while snooped.snoop.has_stored() {
            let given = snooped.snoop.given_nxt();
            let Some(next) = snooped.copies.next(given) else {
                debug_assert!(false, "law 16: what is promised is there");
                break;
            };
            let mut bytes = snooped.snoop.gives_bytes(next.end, next.seg_bytes);
            if bytes == 0 {
                break;
            }
            if turn_segs == 0 {
                if snooped.turn.is_none() {
                    move_to(&mut self.starved, key, &mut snooped.turn, Some(self.next_turn));
                    self.next_turn += 1;
                }
                break;
            }
            let seg_bytes = next.seg_bytes.max(1);
            bytes = bytes.min(turn_segs.saturating_mul(seg_bytes));
            let segs = if bytes > seg_bytes { bytes.div_ceil(seg_bytes) } else { 1 };
            let end = given.wrapping_add(bytes);
            let spare = &mut core.spare;
            let Some(more_bytes) = snooped.copies.give(&next, end, &current, spare, to_guest)
            else {
                break;
            };
            if !is_under_way(snooped) {
                snooped.copies.begin(now_ns);
            }
            snooped.snoop.gave(end);
            self.copied_bytes += more_bytes;
            self.sharing.ring_segs = self.sharing.ring_segs.saturating_sub(segs);
            turn_segs = turn_segs.saturating_sub(segs);
        }
        if !snooped.snoop.has_stored() {
            let nxt = snooped.snoop.0.ring_nxt;
            let is_due = snooped.fin.as_ref().is_some_and(|(seq, _)| !after(*seq, nxt));
            if is_due && let Some((_, fin)) = snooped.fin.take() {
                to_guest.push(renewed(&fin, &current));
            }
        }
    }

    /// The next flow of which stored data waits for the ring, if that has room; of at most `turns` more.
    /// In a small ring, each has room for a segment in turn.
    pub(in crate::port) fn next_starved(
        &mut self,
        core: &mut Core,
        turns: &mut usize,
    ) -> Option<FlowId> {
        while *turns > 0 && self.sharing.ring_segs > 0 {
            *turns -= 1;
            let (_, key) = self.starved.pop_first()?;
            let id = core.table.find(&key);
            debug_assert!(id.is_some(), "a flow that is forgotten waits for nothing");
            let Some(id) = id else { continue };
            if let Some(Entry { snooped, .. }) = core.table.get_mut(id) {
                snooped.turn = None;
            }
            return Some(id);
        }
        None
    }

    /// How many of these have a turn when the guest has made room.
    pub(in crate::port) fn turns(&self) -> usize {
        match self.sharing.ring_segs > sys::SNOOP_RESERVED_SEGS {
            true => self.starved.len(),
            false => self.starved.len().min(TURNS_IN_A_SMALL_RING),
        }
    }

    /// Asks the guest for its window, if that is due (RFC 9293, 3.8.6.1).
    pub(in crate::port) fn probe(&self, core: &mut Core, id: FlowId) -> Option<Frame> {
        let now_ns = core.now_ns;
        let Entry { state: flow, held, snooped, .. } = core.table.get_mut(id)?;
        let probe_ns = snooped.probe_ns(flow, self.heard_ns)?;
        if probe_ns > now_ns {
            return None;
        }
        let current = snooped.current(flow, &held.hold);
        let seq = snooped.snoop.0.guest_ack.wrapping_sub(1);
        snooped.copies.probe(now_ns, seq, &current)
    }

    /// Is a window update due to the peer, of what is free of the buffer?
    pub(in crate::port) fn is_update_due(&self, core: &Core, id: FlowId) -> bool {
        let Some(Entry { state: flow, snooped, .. }) = core.table.get(id) else { return false };
        let treated = self.treated(core.treatments.params_of(flow));
        let params = treated.params();
        let room = self.room_for(snooped, params);
        flow.is_shut(&snooped.snoop, params) && flow.receive_updates(&snooped.snoop, params, &room)
    }
}
