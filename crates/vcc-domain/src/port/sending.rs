//! What leaves for the fabric: what the guest sends, what was held, what is repaired, and what the port
//! says in the guest's name.

use vcc_engine::{Action, Admission, FlowKey, sys};

use super::Port;
use super::holding::Holding;
use super::repairing::{Expired, Repair};
use crate::frame::{Direction, Frame, Out, Verdict};
use crate::hold::{
    BufferSpec, Occupancy, Waiting, charge_bytes, cut, reparsed_at, set_seq, without_payload,
};
use crate::parse::Parsed;
use crate::table::{Entry, FlowId};

impl Port {
    /// Bytes held for the guest, of the port's buffer.
    pub fn held_bytes(&self) -> u32 {
        self.core.buffer.used_bytes()
    }

    /// Bytes of the buffer that the guest's connections were granted and have not used yet.
    pub fn granted_bytes(&self) -> u32 {
        self.core.buffer.granted_bytes()
    }

    /// Records how much of the buffer each connection has over time, for an experiment.
    pub fn watch_buffer(&mut self) {
        self.core.watches_buffer = true;
    }

    /// What [`Port::watch_buffer`] has recorded, of each connection.
    pub fn occupancies(&self) -> impl Iterator<Item = (&FlowKey, &Occupancy)> {
        self.core.table.iter().map(|entry| (&entry.key, &entry.held.occupancy))
    }

    /// Changes the size of the buffer and how flows share it. One that has more than its new size takes
    /// nothing until enough has left.
    pub fn set_buffer(&mut self, buffer: BufferSpec) {
        self.core.buffer.change(buffer.size_bytes, buffer.policy);
    }

    /// Runs the engine on a frame of the guest and sends it on its way. `out` receives the FACK that
    /// follows it.
    pub(super) fn leave(
        &mut self,
        id: FlowId,
        frame: &mut Frame,
        parsed: &Parsed,
        out: &mut Out,
    ) -> Verdict {
        let raised = self.snooping.raised(&mut self.core, id, frame, parsed);
        self.leave_raised(id, frame, raised.as_ref().unwrap_or(parsed), out)
    }

    /// The same, for a frame that acknowledges what was promised.
    fn leave_raised(
        &mut self,
        id: FlowId,
        frame: &mut Frame,
        parsed: &Parsed,
        out: &mut Out,
    ) -> Verdict {
        let mut action = Action::default();
        let asked = self.ask_engine(Direction::FromGuest, id, &parsed.segment, &mut action, out);
        if asked.is_none() {
            return Verdict::Pass;
        }
        let verdict = self.carry_out(Direction::FromGuest, frame, parsed, &action);
        if verdict == Verdict::Pass && u32::from(action.emit) == sys::EMIT_FACK {
            out.to_fabric.extend(self.fack(id, frame, parsed, &action));
        }
        verdict
    }

    /// Sends a frame of the port's own making; its FACK follows it.
    pub(super) fn leave_as(
        &mut self,
        id: FlowId,
        mut frame: Frame,
        parsed: &Parsed,
        out: &mut Out,
    ) {
        let raised = self.snooping.raised(&mut self.core, id, &mut frame, parsed);
        self.leave_as_said(id, frame, raised.as_ref().unwrap_or(parsed), out);
    }

    /// The same, for a frame that acknowledges what was promised.
    pub(super) fn leave_as_said(
        &mut self,
        id: FlowId,
        mut frame: Frame,
        parsed: &Parsed,
        out: &mut Out,
    ) {
        let place = out.to_fabric.len();
        if self.leave_raised(id, &mut frame, parsed, out) == Verdict::Pass {
            out.to_fabric.insert(place, frame);
        }
    }

    /// Sends a frame without payload at another sequence number.
    pub(super) fn leave_empty(&mut self, id: FlowId, mut frame: Frame, seq: u32, out: &mut Out) {
        let mut parsed = reparsed_at(&frame, self.core.now_us());
        set_seq(&mut frame, &mut parsed, seq);
        self.leave_as(id, frame, &parsed, out);
    }

    /// A segment of the guest: it passes, is dropped or is held, perhaps in parts.
    pub(super) fn hold_from_guest(
        &mut self,
        id: FlowId,
        frame: &mut Frame,
        parsed: &mut Parsed,
        out: &mut Out,
    ) -> Verdict {
        Repair::judge(&mut self.core, id);
        let Some(fate) = Holding::admit(&mut self.core, id, (frame, parsed)) else {
            return Verdict::Pass;
        };
        if fate.whole {
            return self.leave(id, frame, parsed, out);
        }
        let Some(Entry { state: flow, .. }) = self.core.table.get(id) else { return Verdict::Pass };
        if fate.probe {
            let seq = flow.snd_nxt.wrapping_sub(1);
            self.leave_empty(id, without_payload(frame, parsed), seq, out);
            return Verdict::Held;
        }
        let acks = flow.hold_acks(&parsed.segment);
        let ack = acks.then(|| (parsed.segment, without_payload(frame, parsed)));
        let verdict = self.hold_parts(id, frame, parsed, fate, out);
        if let (Some((said, ack)), Some(Entry { state: flow, .. })) = (ack, self.core.table.get(id))
        {
            // Perhaps a part that left has carried it.
            if flow.hold_acks(&said) {
                self.leave_empty(id, ack, flow.snd_nxt, out);
            }
        }
        verdict
    }

    /// After a segment of the guest: those that it has put in order follow.
    pub(super) fn put_in_order(&mut self, id: FlowId, out: &mut Out) {
        while let Some(Waiting { mut frame, mut parsed }) =
            Holding::next_in_order(&mut self.core, id)
        {
            let place = out.to_fabric.len();
            if self.hold_from_guest(id, &mut frame, &mut parsed, out) == Verdict::Pass {
                out.to_fabric.insert(place, frame);
            }
        }
    }

    /// Passes, drops and holds the parts of a segment.
    fn hold_parts(
        &mut self,
        id: FlowId,
        frame: &mut Frame,
        parsed: &mut Parsed,
        fate: Admission,
        out: &mut Out,
    ) -> Verdict {
        let mut rest = Frame { bytes: std::mem::take(&mut frame.bytes), ..*frame };
        if fate.pass_bytes > 0 {
            let first = cut(&mut rest, parsed, fate.pass_bytes as usize);
            let first_parsed = reparsed_at(&first, self.core.now_us());
            self.leave_as(id, first, &first_parsed, out);
            *parsed = reparsed_at(&rest, self.core.now_us());
        }
        if fate.drop_bytes > 0 {
            drop(cut(&mut rest, parsed, fate.drop_bytes as usize));
            *parsed = reparsed_at(&rest, self.core.now_us());
        }
        if !fate.hold {
            return Verdict::Held;
        }
        // Where losses are repaired here, the guest need not see that something was behind a gap.
        let waits = fate.gap && Holding::retains(&self.core, id);
        if !waits
            && out.to_fabric.is_empty()
            && Holding::leaves_at_once(&self.core, id, parsed)
            && (parsed.segment.payload_bytes == 0 || self.hold.pacing().admits(&mut self.core, id))
        {
            *frame = rest;
            match self.core.room_bytes(id, &parsed.segment) < charge_bytes(frame) {
                true => Repair::pass_unretained(&mut self.core, id, &parsed.segment),
                false => Repair::retain_new(&mut self.core, id, frame, parsed),
            }
            let verdict = self.leave(id, frame, parsed, out);
            self.repair.arm(&mut self.core, id);
            return verdict;
        }
        if fate.gap {
            Holding::keep_out_of_order(&mut self.core, id, rest, parsed);
            return Verdict::Held;
        }
        let holds_bytes = Holding::holds_bytes(&self.core, id, (&rest, parsed));
        if holds_bytes < parsed.segment.payload_bytes {
            // The guest retransmits it. Its other connections are not to wait for this one.
            self.core.counters.count(sys::COUNT_NO_BUFFER);
            if holds_bytes == 0 {
                return Verdict::Held;
            }
            rest = cut(&mut rest, parsed, holds_bytes as usize);
            *parsed = reparsed_at(&rest, self.core.now_us());
        }
        Holding::keep(&mut self.core, id, rest, parsed);
        self.release(id, out);
        Verdict::Held
    }

    /// Sends what the windows admit of what is held.
    pub(super) fn release(&mut self, id: FlowId, out: &mut Out) {
        while let Some(leaving) = self.hold.next_leaving(&mut self.core, id) {
            Repair::retain_held(&mut self.core, id, &leaving.frame, &leaving.parsed);
            self.leave_as(id, leaving.frame, &leaving.parsed, out);
        }
        self.repair.arm(&mut self.core, id);
        self.intervals.arm(&mut self.core, id);
    }

    /// Sends lost segments again, as far as the windows admit.
    pub(super) fn resend(&mut self, id: FlowId, out: &mut Out) {
        while let Some(at) = Repair::next_lost(&mut self.core, id) {
            if !self.hold.pacing().admits(&mut self.core, id) {
                return;
            }
            self.send_again(id, at, out);
        }
    }

    fn send_again(&mut self, id: FlowId, at: usize, out: &mut Out) {
        let Some((again, before)) = Repair::again(&self.core, id, at) else { return };
        self.leave_as(id, again.frame, &again.parsed, out);
        Repair::resent(&mut self.core, id, at, before);
    }

    /// What is lost, and what is held.
    pub(super) fn send_waiting(&mut self, id: FlowId, out: &mut Out) {
        self.resend(id, out);
        self.release(id, out);
        self.core.settle_grant(id);
    }

    /// Processes the timers of what has left.
    pub(super) fn advance_repairs(&mut self, out: &mut Out) {
        while let Some(id) = self.repair.next_due(&mut self.core) {
            Repair::judge(&mut self.core, id);
            match Repair::expire(&mut self.core, id) {
                Expired::Nothing => {}
                Expired::GiveUp => self.give_up(id, out),
                Expired::Again(at) => self.send_again(id, at, out),
                Expired::Empty(frame, seq) => self.leave_empty(id, frame, seq, out),
            }
            self.send_waiting(id, out);
            self.split.record(&mut self.core, id);
        }
    }

    /// Sends the segments whose time has come.
    pub(super) fn advance_intervals(&mut self, out: &mut Out) {
        while let Some(id) = self.intervals.next_due(&mut self.core) {
            self.send_waiting(id, out);
            self.split.record(&mut self.core, id);
        }
    }

    /// Sends what the rate admits by now, of each connection that waits in turn.
    pub(super) fn advance_pacing(&mut self, out: &mut Out) {
        for _ in 0..self.hold.pacing().begin_turns(&self.core) {
            let Some(id) = self.hold.pacing().begin_turn(&mut self.core) else { continue };
            self.send_waiting(id, out);
            self.split.record(&mut self.core, id);
            if !self.hold.pacing().end_turn() {
                break;
            }
        }
    }
}
