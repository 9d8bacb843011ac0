//! A port that acknowledges in the guest's name what is in its receive ring (`engine/snoop.h`).

use std::collections::BTreeSet;

use vcc_engine::{Segment, Snoop, sys};

use super::room::move_to;
use super::{NS_PER_US, Port};
use crate::empty_segment::Bare;
use crate::frame::{Direction, Frame, Out};
use crate::parse::Parsed;
use crate::receipt::Receipt;
use crate::rewrite::rewrite_header;
use crate::snoop::{Answer, Current, Sharing, blocks, is_reset, is_sound, strip_promised};
use crate::table::{Entry, FlowId};
use crate::timers::Timers;
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

/// What a port keeps to acknowledge in its guest's name.
#[derive(Clone, Default)]
pub(super) struct Snooping {
    /// The treatment has had `snoop`.
    pub is_on: bool,
    pub sharing: Sharing,
    copied_bytes: u32,
    /// When the guest last sent a frame or read one.
    pub heard_ns: u64,
    timers: Timers,
    /// The flows whose acknowledgements or windows wait for room, by the buffers from which they do no
    /// longer.
    pub waiting: BTreeSet<(u32, FlowKey)>,
    /// The flows whose peers have a small window, by the share of the ring from which it is widened.
    pub narrow: BTreeSet<(u32, FlowKey)>,
}

impl Snooping {
    /// Bytes of copies that have come, and that are free again.
    pub(super) fn add_copied(&mut self, kept_bytes: u32, freed_bytes: u32) {
        self.copied_bytes = self.copied_bytes + kept_bytes - freed_bytes;
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        let share_ns = if self.waiting.is_empty() && self.narrow.is_empty() {
            None
        } else {
            self.sharing.next_ns()
        };
        [self.timers.next_ns(), share_ns].into_iter().flatten().min()
    }

    /// The first flow that waits, if there is room for its acknowledgement.
    #[inline]
    pub(super) fn opens_first(&self) -> Option<(u32, FlowKey)> {
        self.waiting.first().filter(|first| self.sharing.is_open_for(first.0)).copied()
    }

    /// The first flow with a small window, if there is room for a larger one.
    #[inline]
    pub(super) fn widens_first(&self) -> Option<(u32, FlowKey)> {
        self.narrow.first().filter(|first| self.sharing.is_wide_for(first.0)).copied()
    }
}

impl Port {
    /// The guest's receive ring has a frame that passed [`Port::to_guest`], which returned the receipt:
    /// only now may it be acknowledged. `out` receives the acknowledgement.
    pub fn placed(&mut self, now_ns: u64, frame: Frame, receipt: Receipt, out: &mut Out) {
        self.core.note_time(now_ns);
        if !self.snooping.is_on {
            return;
        }
        let Some(parsed) = &receipt.into_parsed(&frame, now_ns / NS_PER_US) else { return };
        let Some(id) = self.core.table.find(&parsed.key) else { return };
        let Some(Entry { key, state: flow, held, snooped, .. }) = self.core.table.get_mut(id)
        else {
            return;
        };
        let begun = snooped.snoop.0.begun != 0;
        if !begun || self.snooping.copied_bytes >= COPIES_MAX_BYTES {
            return;
        }
        if !is_sound(&frame, parsed, &snooped.headers) {
            return;
        }
        let stamp = parsed.tsval();
        let (snoop, segment) = (&mut snooped.snoop, &parsed.segment);
        let owed = snoop.is_promise_due();
        let sent = held.hold.split_ack(flow.snd_nxt);
        let placed = flow.snoop_placed(snoop, self.core.treatments.of(flow), segment, sent, stamp);
        let is_behind_hole = after(segment.seq, snoop.0.ring_nxt);
        let has_space = !is_behind_hole || self.snooping.copied_bytes < BEHIND_HOLES_MAX_BYTES;
        if placed.keep != 0 && has_space {
            let (kept_bytes, freed_bytes) = snooped.copies.keep(frame, parsed);
            self.snooping.copied_bytes = self.snooping.copied_bytes + kept_bytes - freed_bytes;
            let (sharing, share) = (&mut self.snooping.sharing, &mut snooped.share);
            if snoop.ends_message(segment) {
                sharing.end(share);
                snoop.falls_silent();
            } else {
                if share.is_silent() {
                    snoop.resumes();
                }
                sharing.heard(now_ns, key, share);
            }
        }
        let begins = snooped.note_promise(now_ns, owed);
        match u32::from(placed.answer) {
            sys::ANSWER_NOW => self.say_promised(id, out),
            sys::ANSWER_LATER if snooped.answer_ns.is_none() => {
                snooped.answer_ns = Some(now_ns + DELAYED_ACK_NS);
                self.set_timer(id);
            }
            _ => {}
        }
        if begins {
            self.set_timer(id);
        }
        self.note_waiting(id);
        // Buffers that were set aside for the flow are free for others.
        self.tell_room(out);
    }

    /// Must the shell report to the port what lies in the guest's ring?
    pub fn snoops(&self) -> bool {
        self.snooping.is_on
    }

    /// Bytes of copies of what guests have not acknowledged themselves: what was promised, and what
    /// lies behind a hole.
    pub fn promised_bytes(&self) -> u32 {
        self.snooping.copied_bytes
    }

    pub(super) fn note_snoop(&mut self) {
        self.snooping.is_on |= self.core.treatments.any(|params| params.0.snoop != 0);
    }

    /// A SYN or SYN-ACK has passed to the guest; `stripped`: without MPTCP's options.
    pub(super) fn snoop_peer_syn(&mut self, id: FlowId, parsed: &Parsed, stripped: bool) {
        if !self.snooping.is_on {
            return;
        }
        if let Some(Entry { snooped, .. }) = self.core.table.get_mut(id) {
            let tsval = parsed.tsval().unwrap_or(0);
            snooped.snoop.peer_syn(&parsed.segment, tsval, stripped);
        }
    }

    /// A segment of the guest. True if it is absorbed, because it reports nothing new to the
    /// peer.
    pub(super) fn snoop_from_guest(
        &mut self,
        id: FlowId,
        frame: &mut Frame,
        parsed: &mut Parsed,
        out: &mut Out,
    ) -> bool {
        if !self.snooping.is_on {
            return false;
        }
        let (now_ns, snooping) = (self.core.now_ns, &mut self.snooping);
        snooping.heard_ns = now_ns;
        let Some(Entry { state: flow, held, snooped, .. }) = self.core.table.get_mut(id) else {
            return false;
        };
        let before = snooped.snoop.0.guest_ack;
        let owed = snooped.snoop.is_promise_due();
        if !flow.snoop_guest_acked(&mut snooped.snoop, &parsed.segment) {
            snooping.copied_bytes -= snooped.copies.clear();
            snooping.sharing.end(&mut snooped.share);
            snooped.cancel_answer();
        }
        snooped.note(frame, parsed);
        let ack = snooped.snoop.0.guest_ack;
        snooping.copied_bytes -= snooped.copies.acknowledged(now_ns, ack);
        // Data that it has reported behind a hole that it fills itself are promised now.
        let begins = snooped.note_promise(now_ns, owed);
        // It takes what it was given again: more of it, at the pace of its acknowledgements.
        if snooped.copies.is_repairing() && snooped.snoop.is_promise_due() && ack != before {
            let current = Current::of(flow, &held.hold, snooped.snoop.0.ts_recent);
            out.to_guest.extend(snooped.given_again(now_ns, AGAIN_AT_ONCE, current));
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
        if is_repairing || begins {
            // A guest that is heard is given it again sooner.
            self.set_timer(id);
        }
        let Some(Entry { state: flow, snooped, .. }) = self.core.table.get_mut(id) else {
            return false;
        };
        let room = self.snooping.sharing.room(&snooped.share);
        let treatment = self.core.treatments.of(flow);
        let absorbs = flow.snoop_absorbs(&snooped.snoop, treatment, &room, &parsed.segment);
        if absorbs {
            flow.snoop_absorbed(&parsed.segment);
            // Held frames must not leave with older timestamps than those of an answer.
            self.note_latest(id, frame, parsed);
            self.note_waiting(id);
        }
        absorbs
    }

    /// Makes a frame to the peer acknowledge as much as was promised. None if it does already.
    pub(super) fn raised(
        &mut self,
        id: FlowId,
        frame: &mut Frame,
        parsed: &Parsed,
    ) -> Option<Parsed> {
        if !self.snooping.is_on {
            return None;
        }
        let Entry { state: flow, snooped, .. } = self.core.table.get_mut(id)?;
        let segment = &parsed.segment;
        let room = self.snooping.sharing.room(&snooped.share);
        let said =
            flow.snoop_ack_to_send(&snooped.snoop, self.core.treatments.of(flow), &room, segment);
        flow.snoop_ack_sent(&mut snooped.snoop, &said);
        snooped.answer_waits = false;
        let ts_recent = snooped.snoop.0.ts_recent;
        self.note_waiting(id);
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

    /// Delayed ACKs, and what the guest is given again.
    pub(super) fn advance_snooping(&mut self, out: &mut Out) {
        let now_ns = self.core.now_ns;
        while let Some((at_ns, key)) = self.snooping.timers.pop(now_ns) {
            let Some(id) = self.core.table.find(&key) else { continue };
            let Some(Entry { state: flow, snooped, .. }) = self.core.table.get_mut(id) else {
                continue;
            };
            if snooped.timer_ns != Some(at_ns) {
                continue;
            }
            snooped.timer_ns = None;
            if snooped.answer_ns.is_some_and(|due_ns| due_ns <= now_ns) {
                snooped.answer_ns = None;
                if flow.is_answer_due(&snooped.snoop) {
                    self.answer(id, out);
                }
            }
            self.give_again(id, out);
            self.set_timer(id);
        }
        self.end_shares();
        self.tell_room(out);
    }

    /// Acknowledges in the guest's name.
    pub(super) fn answer(&mut self, id: FlowId, out: &mut Out) {
        self.say_promised(id, out);
        self.note_waiting(id);
    }

    /// The same; [`Port::note_waiting`] has to follow.
    fn say_promised(&mut self, id: FlowId, out: &mut Out) {
        let now_us = self.core.now_us();
        let Some(Entry { key, state: flow, snooped, .. }) = self.core.table.get_mut(id) else {
            return;
        };
        snooped.answer_ns = None;
        let room = self.snooping.sharing.room(&snooped.share);
        if !flow.snoop_has_room(&snooped.snoop, &room) && flow.is_answer_due(&snooped.snoop) {
            snooped.answer_waits = true;
            return;
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
        let said =
            flow.snoop_ack_to_send(&snooped.snoop, self.core.treatments.of(flow), &room, &own);
        flow.snoop_ack_sent(&mut snooped.snoop, &said);
        snooped.answer_waits = false;
        let answer = Answer { key, flow, snooped, said }.made(now_us);
        self.leave_as_said(id, answer.frame, &answer.parsed, out);
    }

    /// The guest has not acknowledged what was promised for a while.
    fn give_again(&mut self, id: FlowId, out: &mut Out) {
        let now_ns = self.core.now_ns;
        let heard_ns = self.snooping.heard_ns;
        let Some(Entry { state: flow, snooped, .. }) = self.core.table.get(id) else { return };
        if snooped.again_ns(flow, heard_ns).is_none_or(|due_ns| due_ns > now_ns) {
            return;
        }
        self.thinning.hand_over(&mut self.core, id, &mut out.to_guest);
        let Some(Entry { state: flow, held, snooped, .. }) = self.core.table.get_mut(id) else {
            return;
        };
        let snoop = &snooped.snoop.0;
        let takes = after(snoop.guest_edge, snoop.guest_ack);
        let current = Current::of(flow, &held.hold, snoop.ts_recent);
        snooped.copies.note_refusal(heard_ns, takes);
        if snooped.copies.refusals() > REFUSALS_MAX {
            self.give_up(id, out);
            return;
        }
        out.to_guest.extend(snooped.given_again(now_ns, 1, current));
    }

    /// The guest does not take what was promised: neither end may believe that the connection
    /// continues (law 16).
    fn give_up(&mut self, id: FlowId, out: &mut Out) {
        let Some(Entry { key, state: flow, held, snooped, .. }) = self.core.table.get(id) else {
            return;
        };
        let reset = Bare {
            direction: Direction::ToGuest,
            seq: snooped.snoop.0.guest_ack,
            ack: held.hold.split_ack(flow.snd_una),
            flags: sys::TCP_RST | sys::TCP_ACK,
            window: 0,
            timestamps: None,
        };
        out.to_guest.push(reset.frame(key, &snooped.headers.neighbour()));
        let said = vcc_engine::Said {
            ack: snooped.snoop.0.ring_nxt,
            edge: snooped.snoop.0.ring_nxt,
            window: 0,
            flags: (sys::TCP_RST | sys::TCP_ACK) as u16,
        };
        let answer = Answer { key, flow, snooped, said }.made(self.core.now_us());
        self.core.counters.count(sys::COUNT_PROMISE_BROKEN);
        self.leave_as(id, answer.frame, &answer.parsed, out);
        self.end_snooping(id);
    }

    /// Nothing more is promised of a connection that has ended by a RST. After both FINs, data may
    /// still have to reach the guest.
    pub(super) fn end_snooped(&mut self, id: FlowId, by_reset: bool) {
        if !self.snooping.is_on {
            return;
        }
        let Some(Entry { state: flow, .. }) = self.core.table.get(id) else { return };
        if by_reset || is_reset(flow) {
            self.end_snooping(id);
        }
    }

    /// A RST has ended the connection, in any state.
    pub(super) fn end_snooping(&mut self, id: FlowId) {
        let Some(Entry { snooped, .. }) = self.core.table.get_mut(id) else { return };
        self.snooping.copied_bytes -= snooped.copies.clear();
        self.snooping.sharing.end(&mut snooped.share);
        snooped.snoop = Snoop::default();
        snooped.cancel_answer();
        self.note_waiting(id);
    }

    pub(super) fn forget_snooped(&mut self, id: FlowId) {
        let Some(Entry { key, snooped, .. }) = self.core.table.get_mut(id) else { return };
        self.snooping.copied_bytes -= snooped.copies.clear();
        self.snooping.timers.clear(&mut snooped.timer_ns, key);
        self.snooping.sharing.end(&mut snooped.share);
        move_to(&mut self.snooping.waiting, key, &mut snooped.opens_at_segs, None);
        move_to(&mut self.snooping.narrow, key, &mut snooped.widens_at_segs, None);
    }

    pub(super) fn set_timer(&mut self, id: FlowId) {
        let Some(Entry { key, state: flow, snooped, .. }) = self.core.table.get_mut(id) else {
            return;
        };
        let again_ns = snooped.again_ns(flow, self.snooping.heard_ns);
        let due_ns = match (snooped.answer_ns, again_ns) {
            (Some(answer_ns), Some(again_ns)) => answer_ns.min(again_ns),
            (Some(due_ns), None) | (None, Some(due_ns)) => due_ns,
            (None, None) => return,
        };
        self.snooping.timers.set(&mut snooped.timer_ns, due_ns.max(self.core.now_ns), key);
    }
}
