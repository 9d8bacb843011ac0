//! A port that acknowledges in the guest's name what is in its receive ring (`engine/snoop.h`).

mod buffer;
mod room;

use std::collections::BTreeSet;

use vcc_engine::{FlowState, Params, Room, Segment, Snoop, sys};

use super::core::Core;
use crate::empty_segment::Bare;
use crate::frame::{Direction, Frame};
use crate::parse::Parsed;
use crate::receipt::Receipt;
use crate::rewrite::rewrite_header;
use crate::snoop::{
    Accepted, Answer, Made, Sharing, Snooped, SpareList, blocks, is_reset, is_sound, strip_promised,
};
use crate::table::{Entry, FlowId};
use crate::timers::Timers;
pub(super) use buffer::{Arrives, Shown};
use room::move_to;
use vcc_engine::FlowKey;
use vcc_net::seq::after;
use vcc_net::wire::*;

/// Linux: TCP_DELACK_MIN.
const DELAYED_ACK_NS: u64 = 40_000_000;
/// Limit of the copies of what the guests of a port have not acknowledged; without room nothing is
/// promised.
const COPIES_MAX_BYTES: u32 = 16 << 20;
/// Data behind a hole, which the peer may never fill, may take so much of them.
const BEHIND_HOLES_MAX_BYTES: u32 = COPIES_MAX_BYTES / 4;
/// A guest that has refused promised data so often does not take it: by then, two minutes have
/// passed (RFC 9293, 3.8.3: at least 100 s).
const REFUSALS_MAX: u32 = 7;
/// Frames that a guest is given again at once when it begins to take them.
const AGAIN_AT_ONCE: usize = 4;

/// A peer whose window is shut gets what other connections have left of the buffer since, within this
/// time.
const LOOK_NS: u64 = 200_000_000;

/// What a port keeps to acknowledge in its guest's name.
#[derive(Clone, Default)]
pub(super) struct Snooping {
    /// The treatment has had a `receive` other than by the guest alone.
    is_on: bool,
    sharing: Sharing,
    copied_bytes: u32,
    /// When the guest last sent a frame or read one.
    heard_ns: u64,
    timers: Timers,
    /// The flows whose acknowledgements or windows wait for room, by the buffers from which they do no
    /// longer.
    waiting: BTreeSet<(u32, FlowKey)>,
    /// The flows whose peers have a small window, by the share of the ring from which it is widened.
    narrow: BTreeSet<(u32, FlowKey)>,
    /// The flows of which stored data waits for the ring, in turn, and the turn of the next one.
    starved: BTreeSet<(u64, FlowKey)>,
    next_turn: u64,
    /// Without a ledger nothing is stored.
    is_withheld: bool,
    spare_list: SpareList,
}

/// The treatment of a flow.
struct Treated<'params>(&'params Params, Option<Params>);

impl Treated<'_> {
    fn params(&self) -> &Params {
        self.1.as_ref().unwrap_or(self.0)
    }
}

impl Snooping {
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// The treatments may have changed.
    pub(super) fn note_treatments(&mut self, core: &Core) {
        self.is_on |=
            core.treatments.any(|params| u32::from(params.0.receive) != sys::RECEIVE_GUEST);
    }

    /// Is nothing stored, because there is no ledger?
    pub(super) fn is_withheld(&self) -> bool {
        self.is_withheld
    }

    /// When the guest last sent a frame or read one.
    pub(super) fn heard_ns(&self) -> u64 {
        self.heard_ns
    }

    pub(super) fn set_heard_ns(&mut self, heard_ns: u64) {
        self.heard_ns = heard_ns;
    }

    /// Is there no ledger, so that what is stored could be lost in silence?
    pub(super) fn withhold(&mut self, is_withheld: bool) {
        self.is_withheld = is_withheld;
    }

    /// Without a ledger, `buffer` and `accept` are `ring`.
    fn treated<'params>(&self, params: &'params Params) -> Treated<'params> {
        if !self.is_withheld || u32::from(params.0.receive) < sys::RECEIVE_BUFFER {
            return Treated(params, None);
        }
        let mut ring = *params;
        ring.0.receive = sys::RECEIVE_RING as u8;
        Treated(params, Some(ring))
    }

    /// The room for a flow.
    fn room_for(&self, snooped: &Snooped, params: &Params) -> Room {
        match u32::from(params.0.receive) >= sys::RECEIVE_BUFFER {
            true => {
                let free_bytes = COPIES_MAX_BYTES.saturating_sub(self.copied_bytes);
                self.sharing.buffer_room(&snooped.share, free_bytes)
            }
            false => self.sharing.room(&snooped.share),
        }
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        let share_ns = if self.waits_for_room() { self.sharing.next_ns() } else { None };
        [self.timers.next_ns(), share_ns].into_iter().flatten().min()
    }

    /// Bytes of copies of what guests have not acknowledged themselves.
    pub(super) fn copied_bytes(&self) -> u32 {
        self.copied_bytes
    }

    /// What was promised for a guest that comes from another host, with copies of it. Under any rules
    /// here, it is not taken back.
    pub(super) fn arrive(&mut self, snooped: &mut Snooped, copies: Vec<(Frame, Parsed)>) {
        self.is_on |= snooped.snoop.0.begun != 0;
        for (frame, parsed) in copies {
            self.keep(snooped, frame, &parsed);
        }
    }

    /// Keeps a copy of a frame.
    fn keep(&mut self, snooped: &mut Snooped, frame: Frame, parsed: &Parsed) {
        let (kept_bytes, freed_bytes) = snooped.copies.keep(frame, parsed, &mut self.spare_list);
        self.copied_bytes = self.copied_bytes + kept_bytes - freed_bytes;
    }

    /// A frame lies in the guest's ring. Returns its flow, and an acknowledgement that must leave now;
    /// [`Snooping::note_waiting`] must follow.
    pub(super) fn placed(
        &mut self,
        core: &mut Core,
        frame: Frame,
        receipt: &mut Receipt,
    ) -> Option<(FlowId, Option<Made>)> {
        if !self.is_on {
            return None;
        }
        let now_ns = core.now_ns;
        let parsed = receipt.parsed(&frame, core.now_us())?;
        let id = core.table.find(&parsed.key)?;
        let Entry { key, state: flow, held, snooped, .. } = core.table.get_mut(id)?;
        let begun = snooped.snoop.0.begun != 0;
        if !begun || self.copied_bytes >= COPIES_MAX_BYTES {
            return None;
        }
        if !is_sound(&frame, parsed, &snooped.headers) {
            return None;
        }
        let stamp = parsed.tsval();
        let (snoop, segment) = (&mut snooped.snoop, &parsed.segment);
        let owed = snoop.is_promise_due();
        let sent = held.hold.split_ack(flow.snd_nxt);
        let treated = self.treated(core.treatments.params_of(flow));
        let placed = flow.snoop_placed(snoop, treated.params(), segment, sent, stamp);
        let is_behind_hole = after(segment.seq, snoop.0.ring_nxt);
        let has_space = !is_behind_hole || self.copied_bytes < BEHIND_HOLES_MAX_BYTES;
        let mut is_now = u32::from(placed.answer) == sys::ANSWER_NOW;
        if placed.keep != 0 && has_space {
            self.keep(snooped, frame, parsed);
            note_sender(&mut self.sharing, now_ns, key, snooped, segment);
            is_now |= cover(flow, snooped, treated.params());
        }
        let begins = snooped.note_promise(now_ns, owed);
        let is_later = placed.answer == sys::ANSWER_LATER as u8 && snooped.answer_ns.is_none();
        if is_later && !is_now {
            snooped.answer_ns = Some(now_ns + DELAYED_ACK_NS);
        }
        let answer = if is_now { self.answer(core, id) } else { None };
        if begins || is_later {
            self.set_timer(core, id);
        }
        Some((id, answer))
    }

    /// A SYN or SYN-ACK has passed to the guest; `stripped`: without MPTCP's options.
    pub(super) fn peer_syn(&self, core: &mut Core, id: FlowId, parsed: &Parsed, stripped: bool) {
        if !self.is_on {
            return;
        }
        if let Some(Entry { snooped, .. }) = core.table.get_mut(id) {
            let tsval = parsed.tsval().unwrap_or(0);
            snooped.snoop.peer_syn(&parsed.segment, tsval, stripped);
        }
    }

    /// A segment of the guest. True if it is absorbed, because it reports nothing new to the
    /// peer.
    #[inline]
    pub(super) fn absorb(
        &mut self,
        core: &mut Core,
        id: FlowId,
        (frame, parsed): (&mut Frame, &mut Parsed),
        to_guest: &mut Vec<Frame>,
    ) -> bool {
        if !self.is_on {
            return false;
        }
        let now_ns = core.now_ns;
        self.heard_ns = now_ns;
        let Some(Entry { state: flow, held, snooped, .. }) = core.table.get_mut(id) else {
            return false;
        };
        let before = snooped.snoop.0.guest_ack;
        let owed = snooped.snoop.is_promise_due();
        if !flow.snoop_guest_acked(&mut snooped.snoop, &parsed.segment) {
            self.copied_bytes -= snooped.copies.clear();
            self.sharing.end(&mut snooped.share);
            (snooped.stored_end, snooped.fin) = (None, None);
            snooped.accepted = Accepted::No;
            snooped.cancel_answer();
        }
        snooped.note(frame, parsed);
        let ack = snooped.snoop.0.guest_ack;
        let (spare, spare_list) = (&mut core.spare, &mut self.spare_list);
        self.copied_bytes -= snooped.copies.acknowledged(now_ns, ack, spare, spare_list);
        // Data that it has reported behind a hole that it fills itself are promised now.
        let treated = self.treated(core.treatments.params_of(flow));
        cover(flow, snooped, treated.params());
        let begins = snooped.note_promise(now_ns, owed);
        // It takes what it was given again: more of it, at the pace of its acknowledgements.
        if snooped.copies.is_repairing() && snooped.snoop.is_promise_due() && ack != before {
            let current = snooped.current(flow, &held.hold);
            to_guest.extend(snooped.given_again(now_ns, AGAIN_AT_ONCE, current));
        }
        let has_blocks = u32::from(parsed.segment.options) & sys::OPT_SACK != 0;
        if has_blocks {
            for (from, end) in blocks(frame, parsed) {
                snooped.note_block(from, end);
            }
        }
        let is_repairing = snooped.copies.is_repairing();
        if has_blocks && snooped.snoop.is_promise_due() {
            strip_promised(frame, parsed, snooped.snoop.0.ring_nxt);
        }
        let buffers = snooped.snoop.has_stored();
        if is_repairing || begins || buffers {
            // A guest that is heard is given it again sooner.
            self.set_timer(core, id);
        }
        let Some(Entry { state: flow, snooped, .. }) = core.table.get_mut(id) else { return false };
        let treated = self.treated(core.treatments.params_of(flow));
        let room = self.room_for(snooped, treated.params());
        let absorbs = flow.snoop_absorbs(&snooped.snoop, treated.params(), &room, &parsed.segment);
        if absorbs {
            flow.snoop_absorbed(&parsed.segment);
            self.note_waiting(core, id);
        }
        absorbs
    }

    /// Makes a frame to the peer acknowledge as much as was promised. None if it does already.
    #[inline]
    pub(super) fn raised(
        &mut self,
        core: &mut Core,
        id: FlowId,
        frame: &mut Frame,
        parsed: &Parsed,
    ) -> Option<Parsed> {
        if !self.is_on {
            return None;
        }
        let Entry { state: flow, snooped, .. } = core.table.get_mut(id)?;
        let segment = &parsed.segment;
        let treated = self.treated(core.treatments.params_of(flow));
        let room = self.room_for(snooped, treated.params());
        let said = flow.snoop_ack_to_send(&snooped.snoop, treated.params(), &room, segment);
        flow.snoop_ack_sent(&mut snooped.snoop, &said);
        snooped.answer_waits = false;
        let ts_recent = snooped.snoop.0.ts_recent;
        self.note_waiting(core, id);
        if (said.ack, said.window, said.flags) == (segment.ack, segment.window, segment.flags) {
            return None;
        }
        let tcp_at = parsed.ip.tcp_at;
        rewrite_header(frame, parsed, |frame| {
            let bytes = &mut frame.bytes;
            write_u32(bytes, tcp_at + TCP_ACK_AT, said.ack);
            let word = read_u16(bytes, tcp_at + TCP_OFFSET_FLAGS_AT) & !TCP_FLAGS_MASK;
            write_u16(bytes, tcp_at + TCP_OFFSET_FLAGS_AT, word | said.flags);
            write_u16(bytes, tcp_at + TCP_WINDOW_AT, said.window);
            // TSecr belongs to the acknowledgement (RFC 7323, 4.3).
            if let Some(at) = parsed.timestamps_at().filter(|_| said.ack != segment.ack) {
                write_u32(bytes, at + 4, ts_recent);
            }
            parsed.header_bytes
        });
        let tsecr = if said.ack == segment.ack { segment.tsecr } else { ts_recent };
        let segment =
            Segment { ack: said.ack, window: said.window, flags: said.flags, tsecr, ..*segment };
        Some(Parsed { segment, ..parsed.clone() })
    }

    /// The next flow whose timer has gone off. An acknowledgement of it may be due, or promised data
    /// that the guest must be given again; [`Snooping::set_timer`] must follow.
    pub(super) fn next_due(&mut self, core: &mut Core) -> Option<FlowId> {
        self.timers.next_due(&mut core.table, core.now_ns, |entry| &mut entry.snooped.timer_ns)
    }

    /// Has the time of a delayed acknowledgement come, which is still due?
    pub(super) fn take_delayed(&self, core: &mut Core, id: FlowId) -> bool {
        let now_ns = core.now_ns;
        let Some(Entry { state: flow, snooped, .. }) = core.table.get_mut(id) else { return false };
        let answer_ns = snooped.answer_ns.take_if(|due_ns| *due_ns <= now_ns);
        answer_ns.is_some() && flow.is_answer_due(&snooped.snoop)
    }

    /// An acknowledgement in the guest's name, which must leave now; [`Snooping::note_waiting`] must
    /// follow. None: it waits for room.
    #[inline]
    pub(super) fn answer(&self, core: &mut Core, id: FlowId) -> Option<Made> {
        let now_us = core.now_us();
        let Entry { key, state: flow, snooped, .. } = core.table.get_mut(id)?;
        snooped.answer_ns = None;
        let treated = self.treated(core.treatments.params_of(flow));
        let room = self.room_for(snooped, treated.params());
        let buffers = flow.buffers(&snooped.snoop, treated.params());
        let is_due = flow.is_answer_due(&snooped.snoop);
        if !buffers && is_due && !flow.snoop_has_room(&snooped.snoop, &room) {
            snooped.answer_waits = true;
            return None;
        }
        let own = &snooped.snoop.0;
        let window = own.guest_edge.wrapping_sub(own.guest_ack) >> flow.wscale_guest;
        let own = Segment {
            seq: flow.snd_nxt,
            ack: own.guest_ack,
            window: window.min(u16::MAX.into()) as u16,
            flags: sys::TCP_ACK as u16,
            ..Segment::default()
        };
        let said = flow.snoop_ack_to_send(&snooped.snoop, treated.params(), &room, &own);
        flow.snoop_ack_sent(&mut snooped.snoop, &said);
        snooped.answer_waits = false;
        let with_blocks = buffers && flow.has(sys::FLOW_SACK);
        Some(Answer { key, flow, snooped, said, with_blocks }.made(now_us))
    }

    /// Has the guest not acknowledged for a while what was promised?
    pub(super) fn is_unacknowledged(&self, core: &Core, id: FlowId) -> bool {
        let Some(Entry { state: flow, snooped, .. }) = core.table.get(id) else { return false };
        let again_ns = snooped.again_ns(flow, self.heard_ns);
        again_ns.is_some_and(|due_ns| due_ns <= core.now_ns)
    }

    /// Gives the guest what it has not acknowledged again. If it does not take it, neither end may
    /// believe that the connection continues (law 16): the guest is reset, and the RST for the peer
    /// returned, after which [`Snooping::end`] must follow.
    pub(super) fn give_again(
        &self,
        core: &mut Core,
        id: FlowId,
        to_guest: &mut Vec<Frame>,
    ) -> Option<Made> {
        let (now_ns, now_us) = (core.now_ns, core.now_us());
        let Entry { key, state: flow, held, snooped, .. } = core.table.get_mut(id)?;
        let snoop = &snooped.snoop.0;
        let takes = after(snoop.guest_edge, snoop.guest_ack);
        let current = snooped.current(flow, &held.hold);
        snooped.copies.note_refusal(self.heard_ns, takes);
        if snooped.copies.refusals() <= REFUSALS_MAX {
            to_guest.extend(snooped.given_again(now_ns, 1, current));
            return None;
        }
        let reset = Bare {
            direction: Direction::ToGuest,
            seq: snooped.snoop.0.guest_ack,
            ack: held.hold.split_ack(flow.snd_una),
            flags: sys::TCP_RST | sys::TCP_ACK,
            window: 0,
            timestamps: None,
        };
        to_guest.push(reset.frame(key, &snooped.headers.neighbour()));
        let said = vcc_engine::Said {
            ack: snooped.snoop.0.ring_nxt,
            edge: snooped.snoop.0.ring_nxt,
            window: 0,
            flags: (sys::TCP_RST | sys::TCP_ACK) as u16,
        };
        core.counters.count(sys::COUNT_PROMISE_BROKEN);
        Some(Answer { key, flow, snooped, said, with_blocks: false }.made(now_us))
    }

    /// Nothing more is promised of a connection that has ended by a RST. After both FINs, data may
    /// still have to reach the guest.
    pub(super) fn note_end(&mut self, core: &mut Core, id: FlowId, by_reset: bool) {
        if !self.is_on {
            return;
        }
        let Some(Entry { state: flow, .. }) = core.table.get(id) else { return };
        if by_reset || is_reset(flow) {
            self.end(core, id);
        }
    }

    /// A RST has ended the connection, in any state.
    pub(super) fn end(&mut self, core: &mut Core, id: FlowId) {
        let Some(Entry { snooped, .. }) = core.table.get_mut(id) else { return };
        self.copied_bytes -= snooped.copies.clear();
        self.sharing.end(&mut snooped.share);
        snooped.snoop = Snoop::default();
        (snooped.stored_end, snooped.fin) = (None, None);
        snooped.accepted.end();
        snooped.cancel_answer();
        self.note_waiting(core, id);
    }

    /// Is the flow listed nowhere, and does it wait for nothing? As long as its data is stored, that stays so
    /// (`snoop_needs`), and [`Snooping::note_waiting`] has nothing to do.
    pub(super) fn waits_for_nothing(&self, core: &Core, id: FlowId) -> bool {
        let Some(Entry { snooped, .. }) = core.table.get(id) else { return true };
        let is_listed = snooped.opens_at_segs.is_some() || snooped.widens_at_segs.is_some();
        !(is_listed || snooped.answer_waits || snooped.share.due_segs > 0)
    }

    pub(super) fn forget(&mut self, core: &mut Core, id: FlowId) {
        let Some(Entry { key, snooped, .. }) = core.table.get_mut(id) else { return };
        self.copied_bytes -= snooped.copies.clear();
        self.timers.clear(&mut snooped.timer_ns, key);
        self.sharing.end(&mut snooped.share);
        move_to(&mut self.waiting, key, &mut snooped.opens_at_segs, None);
        move_to(&mut self.narrow, key, &mut snooped.widens_at_segs, None);
        move_to(&mut self.starved, key, &mut snooped.turn, None);
        if core.table.len() == 1 {
            self.spare_list = SpareList::default();
        }
    }

    pub(super) fn set_timer(&mut self, core: &mut Core, id: FlowId) {
        let Some(Entry { key, state: flow, snooped, .. }) = core.table.get_mut(id) else { return };
        let (now_ns, heard_ns) = (core.now_ns, self.heard_ns);
        // Mostly it goes off before any of these times, which costs less to see than whether they matter.
        let own_ns = snooped.timer_ns.unwrap_or(u64::MAX);
        let mut due_ns = own_ns.min(snooped.answer_ns.unwrap_or(u64::MAX));
        due_ns = due_ns.min(snooped.accepted.due_ns().unwrap_or(u64::MAX));
        if snooped.copies.least_due_ns() < due_ns {
            let again_ns = snooped.again_ns(flow, heard_ns);
            let probe_ns = snooped.probe_ns(flow, heard_ns);
            due_ns = due_ns.min(again_ns.unwrap_or(u64::MAX)).min(probe_ns.unwrap_or(u64::MAX));
        }
        let params = core.treatments.params_of(flow);
        if now_ns + LOOK_NS < due_ns && !self.is_withheld && flow.is_shut(&snooped.snoop, params) {
            due_ns = now_ns + LOOK_NS;
        }
        if due_ns < own_ns {
            self.timers.set(&mut snooped.timer_ns, due_ns.max(now_ns), key);
        }
    }
}

/// Data of the peer has come.
fn note_sender(
    sharing: &mut Sharing,
    now_ns: u64,
    key: &FlowKey,
    Snooped { snoop, share, .. }: &mut Snooped,
    segment: &Segment,
) {
    if snoop.ends_message(segment) {
        sharing.end(share);
        snoop.falls_silent();
        return;
    }
    if share.is_silent() {
        snoop.resumes();
    }
    sharing.heard(now_ns, key, share);
}

/// What is stored behind a hole is promised once the hole is filled. Returns whether more is.
#[inline]
fn cover(flow: &FlowState, snooped: &mut Snooped, params: &Params) -> bool {
    // Mostly there is no hole.
    if !snooped.copies.reach_beyond(snooped.snoop.0.ring_nxt) {
        return false;
    }
    cover_beyond(flow, snooped, params)
}

fn cover_beyond(flow: &FlowState, snooped: &mut Snooped, params: &Params) -> bool {
    if u32::from(params.0.receive) < sys::RECEIVE_BUFFER {
        return false;
    }
    let nxt = snooped.covered_nxt();
    let is_more =
        nxt != snooped.snoop.0.ring_nxt && flow.snoop_covered(&mut snooped.snoop, params, nxt);
    if is_more {
        snooped.note_stored();
    }
    is_more
}
