//! What the guest's receive ring has and has room for, as the card reports it: acknowledgements in the
//! guest's name, and frames that it is given again, leave the port.

use super::Port;
use super::snooping::{Arrives, Shown};
use super::thinning::ReceiveRing;
use crate::frame::{Direction, Frame, Out};
use crate::parse::{Parsed, parse};
use crate::receipt::Receipt;
use crate::snoop::Made;
use crate::table::FlowId;

/// What has become of a segment for the guest.
pub(super) enum Stored {
    Passes,
    PassesChanged,
    Taken,
}

impl Port {
    /// The guest's receive ring has a frame that passed [`Port::to_guest`], which returned the receipt:
    /// only now may it be acknowledged. `out` receives the acknowledgement.
    pub fn placed(&mut self, now_ns: u64, mut frame: Frame, receipt: Receipt, out: &mut Out) {
        self.core.note_time(now_ns);
        let place = out.to_guest.len();
        self.restore(&mut frame);
        self.note_placed(frame, receipt, out);
        self.show(place, out);
    }

    #[inline(always)]
    fn note_placed(&mut self, frame: Frame, mut receipt: Receipt, out: &mut Out) {
        let Some((id, answer)) = self.snooping.placed(&mut self.core, frame, &mut receipt) else {
            return;
        };
        self.split.record(&mut self.core, id);
        self.leave_answer(id, answer, out);
        self.give(id, out);
        // Buffers that were set aside for the flow are free for others.
        self.tell_room(out);
    }

    /// Must the shell report to the port what lies in the guest's ring?
    pub fn snoops(&self) -> bool {
        self.snooping.is_on()
    }

    /// Bytes of copies of what guests have not acknowledged themselves: what was promised, and what
    /// lies behind a hole.
    pub fn promised_bytes(&self) -> u32 {
        self.snooping.copied_bytes()
    }

    /// The room in the guest's receive ring. The shell reports it before each call with a frame,
    /// and when the guest has made room.
    pub fn set_room(&mut self, now_ns: u64, ring: ReceiveRing, out: &mut Out) {
        self.core.note_time(now_ns);
        let place = out.to_guest.len();
        self.thinning.note_ring(&mut self.core, ring, &mut out.to_guest);
        self.snooping.set_room(&mut self.core, ring);
        self.tell_room(out);
        let mut turns = self.snooping.turns();
        while let Some(id) = self.snooping.next_starved(&mut self.core, &mut turns) {
            self.give(id, out);
        }
        self.show(place, out);
    }

    /// Takes a segment that passes to the guest, if it has to wait for the guest.
    pub(super) fn store(
        &mut self,
        id: FlowId,
        (frame, parsed): (&mut Frame, &mut Parsed),
        shown: Option<Shown>,
        out: &mut Out,
    ) -> Stored {
        let arrives = self.snooping.arrives(&mut self.core, id, (frame, parsed), shown);
        let (empty, answers, is_kept) = match arrives {
            Arrives::Passes => return Stored::Passes,
            Arrives::Moved => return Stored::PassesChanged,
            Arrives::Taken { empty, answers, is_kept } => (empty, answers, is_kept),
        };
        if let Some(empty) = empty {
            self.thinning.hand_over(&mut self.core, id, &mut out.to_guest);
            out.to_guest.push(empty);
        }
        self.split.record(&mut self.core, id);
        if answers {
            let answer = self.snooping.answer(&mut self.core, id);
            self.leave_made(id, answer, out);
        }
        self.give(id, out);
        self.snooping.set_timer(&mut self.core, id);
        if !(is_kept && self.snooping.waits_for_nothing(&self.core, id)) {
            self.snooping.note_waiting(&mut self.core, id);
        }
        Stored::Taken
    }

    /// The same of one that must be read first.
    #[cold]
    pub(super) fn store_unread(
        &mut self,
        id: FlowId,
        frame: &mut Frame,
        shown: Option<Shown>,
        out: &mut Out,
    ) -> Stored {
        let Ok(mut parsed) = parse(frame, Direction::ToGuest) else { return Stored::Passes };
        parsed.segment.now_us = self.core.now_us();
        self.store(id, (frame, &mut parsed), shown, out)
    }

    /// Gives the guest what it has room for of what is stored.
    pub(super) fn give(&mut self, id: FlowId, out: &mut Out) {
        let place = out.to_guest.len();
        self.snooping.give(&mut self.core, id, &mut out.to_guest);
        if out.to_guest.len() == place {
            return;
        }
        if !self.thinning.is_empty() {
            // An ACK that waits comes first.
            let mut late = Vec::new();
            self.thinning.hand_over(&mut self.core, id, &mut late);
            out.to_guest.splice(place..place, late);
        }
        self.split.record(&mut self.core, id);
        self.snooping.set_timer(&mut self.core, id);
    }

    /// Must the shell report room to the port?
    pub fn wants_room(&self) -> bool {
        self.snooping.is_on() || self.thinning.is_on()
    }

    /// Does it hold what the guest sends, so that it takes each frame into its buffer?
    pub fn holds_frames(&self) -> bool {
        self.thinning.is_on()
    }

    /// Is there something to send, to either side, when the guest makes room?
    pub fn waits_for_room(&self) -> bool {
        self.snooping.waits_for_room() || !self.thinning.is_empty()
    }

    /// Sends what has waited for the room that there is.
    #[inline]
    fn tell_room(&mut self, out: &mut Out) {
        let mut turn = None;
        while let Some(id) = self.snooping.next_with_room(&mut self.core, &mut turn) {
            self.answer(id, out);
        }
    }

    /// Delayed ACKs, and what the guest is given again.
    pub(super) fn advance_snooping(&mut self, out: &mut Out) {
        while let Some(id) = self.snooping.next_due(&mut self.core) {
            if self.snooping.take_delayed(&mut self.core, id) {
                self.answer(id, out);
            }
            if self.snooping.is_unacknowledged(&self.core, id) {
                self.give_again(id, out);
            }
            out.to_guest.extend(self.snooping.probe(&mut self.core, id));
            if self.snooping.is_update_due(&self.core, id) {
                self.answer(id, out);
            }
            self.advance_accepted(id, out);
            self.snooping.set_timer(&mut self.core, id);
        }
        self.snooping.end_shares(&mut self.core);
        self.tell_room(out);
    }

    fn give_again(&mut self, id: FlowId, out: &mut Out) {
        self.thinning.hand_over(&mut self.core, id, &mut out.to_guest);
        let reset = self.snooping.give_again(&mut self.core, id, &mut out.to_guest);
        if let Some(Made { frame, parsed }) = reset {
            self.leave_as(id, frame, &parsed, out);
            self.snooping.end(&mut self.core, id);
            self.split.record(&mut self.core, id);
        }
    }

    /// Acknowledges in the guest's name.
    pub(super) fn answer(&mut self, id: FlowId, out: &mut Out) {
        let answer = self.snooping.answer(&mut self.core, id);
        self.leave_answer(id, answer, out);
    }

    fn leave_answer(&mut self, id: FlowId, answer: Option<Made>, out: &mut Out) {
        self.leave_made(id, answer, out);
        self.snooping.note_waiting(&mut self.core, id);
    }

    /// The same, after which [`Snooping::note_waiting`](super::Snooping::note_waiting) must follow.
    fn leave_made(&mut self, id: FlowId, answer: Option<Made>, out: &mut Out) {
        if let Some(Made { frame, ref parsed }) = answer {
            self.leave_as_said(id, frame, parsed, out);
        }
    }
}
