//! The guest comes.

use vcc_engine::export::Fields;
use vcc_engine::{FlowState, Hold, Mode, Retained, Snoop, sys};

use super::super::holding::Holding;
use super::super::repairing::Repair;
use super::super::splitting::promise_of;
use super::super::{NS_PER_US, Port};
use super::owes;
use crate::frame::{Direction, Frame, Out};
use crate::handover::{CannotTakeOver, SnoopedRow, State, Taken, Travelling};
use crate::hold::{Held, Kept, Latest, Waiting, charge_bytes, sequence_end};
use crate::parse::{Parsed, parse};
use crate::receipt::Receipt;
use crate::snoop::{Accepted, Snooped};
use crate::table::{Entry, FlowId, Room};
use vcc_engine::FlowKey;
use vcc_net::seq::{after, before};

/// The result of a guest's arrival.
#[derive(Debug)]
pub struct Arrived {
    pub connections: usize,
    /// Frames to give to the guest, in this order, with the receipts of those from the fabric.
    pub waiting: Vec<(Frame, Option<Receipt>)>,
}

/// A connection as it comes. Its frames have been read.
struct Coming {
    key: FlowKey,
    flow: FlowState,
    held: Held,
    snooped: Snooped,
    sent: Vec<(Waiting, bool)>,
    queue: Vec<Waiting>,
    copies: Vec<(Frame, Parsed)>,
}

impl Port {
    /// Takes over the connections of a guest that comes from another host, under the rules of this
    /// one.
    ///
    /// # Errors
    /// The port is as it was before.
    pub fn take_over(&mut self, now_ns: u64, state: &[u8]) -> Result<Arrived, CannotTakeOver> {
        let (state, fields, mut frames) = State::of_bytes(state, self.max_flows())?;
        let mut with_it = self.clone();
        with_it.core.note_time(now_ns);
        let arrived = with_it.take_all(&state, &fields, &mut frames)?;
        // Ends have heard of those that were ended.
        let brings = with_it.promises_due().saturating_sub(self.promises_due());
        if with_it.split.lacks_ledger() && brings > 0 {
            return Err(CannotTakeOver::NoLedger(brings));
        }
        // Both ports have the same ledger: nothing is written there before this one continues.
        with_it.split.suspend();
        for row in &state.ended {
            with_it.split.refuse(&with_it.core, row.promise(), None);
        }
        *self = with_it;
        Ok(arrived)
    }

    fn take_all(
        &mut self,
        state: &State,
        fields: &Fields,
        frames: &mut Taken,
    ) -> Result<Arrived, CannotTakeOver> {
        if self.params().0.mode == Mode::Drain.number() {
            return Err(CannotTakeOver::Draining);
        }
        let (connections, max) = (state.connections.len(), self.max_flows());
        for (row, number) in state.connections.iter().zip(1..) {
            let coming = Coming::read(self.core.now_ns, row, fields, frames);
            let coming = coming.ok_or(CannotTakeOver::Row(number))?;
            if let Some(macs) = row.macs {
                self.emitter.neighbours.insert(&coming.key, macs.neighbour());
            }
            let is_one =
                self.take_one(coming).ok_or(CannotTakeOver::NoRoom { connections, max })??;
            if !is_one {
                return Err(CannotTakeOver::Row(number));
            }
        }
        let waiting = state.waiting.iter();
        let waiting: Option<Vec<_>> = waiting
            .map(|(row, is_from_fabric)| {
                Some((frames.take(*row)?, is_from_fabric.then(Receipt::unread)))
            })
            .collect();
        let last = connections + state.ended.len() + 1;
        Ok(Arrived { connections, waiting: waiting.ok_or(CannotTakeOver::Row(last))? })
    }

    /// The connections with promises that only a port can keep.
    fn promises_due(&self) -> usize {
        self.core.table.ids().into_iter().filter(|id| promise_of(&self.core, *id).is_some()).count()
    }

    /// Some(false): there can be no such connection. None: there is no room.
    fn take_one(&mut self, coming: Coming) -> Option<Result<bool, CannotTakeOver>> {
        let Coming { key, mut flow, mut held, mut snooped, sent, queue, copies } = coming;
        if let Some(id) = self.core.table.find(&key) {
            if self.core.table.get(id).is_some_and(owes) {
                return Some(Err(CannotTakeOver::Here(key)));
            }
            self.forget(id);
        }
        let now_us = self.core.now_ns / NS_PER_US;
        let (rule, params) = self.core.treatments.judge(&key, flow.has(sys::FLOW_GUEST_OPENED));
        let params = *params;
        if !flow.take_over(&params, now_us) {
            return Some(Ok(false));
        }
        let has_frames = !sent.is_empty() || !queue.is_empty() || !copies.is_empty();
        let is_left_alone = self.core.treatments.epoch() != 0
            && params.0.mode == Mode::Ignore.number()
            && !flow.is_kept()
            && !snooped.accepted.is_live()
            && !has_frames;
        if is_left_alone {
            return Some(Ok(keeps_its_promises(&flow, &held, &snooped)));
        }
        for (waiting, is_sacked) in sent {
            let kept = retained(waiting, now_us as u32);
            flow.repair_sent(&mut held.hold, &mut held.sent.recovery, &kept.facts);
            let bytes = charge_bytes(&kept.waiting.frame);
            flow.repair_charge(&mut held.hold, &mut self.core.buffer, bytes);
            held.sent.push(kept);
            if is_sacked {
                held.sent.last_is_sacked(now_us as u32);
            }
        }
        for waiting in queue {
            let bytes = charge_bytes(&waiting.frame);
            let segment = waiting.segment();
            flow.hold_kept(&mut held.hold, &mut self.core.buffer, &params, segment, bytes);
            held.queue.push(waiting);
        }
        self.snooping.arrive(&mut snooped, copies);
        if !keeps_its_promises(&flow, &held, &snooped) {
            return Some(Ok(false));
        }
        if snooped.snoop.is_promise_due() {
            snooped.copies.begin(self.core.now_ns);
        }
        match self.core.take_place(key) {
            Room::Free | Room::Made(_) => {}
            Room::None => return None,
        }
        let id = self.core.table.find(&key)?;
        self.core.table.end_handshake(id);
        self.accepting.arrive(key, &snooped.accepted);
        self.core.treatments.come_under(&mut flow, rule);
        let entry = self.core.table.get_mut(id)?;
        entry.member = self.core.pools.arrive((&mut flow, &held.hold), &params);
        (entry.state, entry.held, entry.snooped) = (flow, held, snooped);
        Some(Ok(true))
    }

    /// The guest runs here, after a time in which the port was not called: what was held leaves, and
    /// what is promised is kept, from here.
    pub fn go_on(&mut self, now_ns: u64, out: &mut Out) {
        self.core.note_time(now_ns);
        self.split.resume();
        let place = out.to_guest.len();
        for id in self.core.table.ids() {
            self.go_on_with(id, out);
        }
        self.show(place, out);
    }

    fn go_on_with(&mut self, id: FlowId, out: &mut Out) {
        let (now_ns, now_us) = (self.core.now_ns, self.core.now_us());
        let Some(Entry { key, state: flow, held, snooped, .. }) = self.core.table.get_mut(id)
        else {
            return;
        };
        flow.go_on(&mut held.sent.recovery, now_us);
        if held.is_ack_due {
            self.split.ack_is_due(*key);
        }
        if held.hold.retains() {
            held.sent.detect(flow, now_us);
        }
        if flow.is_answer_due(&snooped.snoop) {
            snooped.answer_ns.get_or_insert(now_ns);
        }
        Repair::judge(&mut self.core, id);
        if Holding::has_held(&self.core, id) {
            self.send_waiting(id, out);
        } else {
            self.core.settle_grant(id);
        }
        self.split.record(&mut self.core, id);
        if self.snooping.is_on() {
            self.give(id, out);
            self.snooping.set_timer(&mut self.core, id);
            self.snooping.note_waiting(&mut self.core, id);
        }
    }
}

/// Law 16: the port has all that was promised to either end and has not arrived.
fn keeps_its_promises(flow: &FlowState, held: &Held, snooped: &Snooped) -> bool {
    let Hold(hold) = &held.hold;
    if flow.split_owes(&held.hold) {
        let sent = held.sent.iter().map(|kept| &kept.waiting);
        let mut kept_until = flow.snd_una;
        for segment in sent.chain(held.queue.iter()).map(Waiting::segment) {
            if after(segment.seq, kept_until) {
                break;
            }
            let end = segment.seq.wrapping_add(segment.payload_bytes);
            kept_until = if after(end, kept_until) { end } else { kept_until };
        }
        if before(kept_until, hold.promised) {
            return false;
        }
    }
    let Snoop(sys::vcc_snoop { guest_ack, ring_nxt, sacked_from, sacked_end, .. }) = snooped.snoop;
    let has = |from, end| snooped.copies.covered(from, end) == end;
    // Data behind a hole are promised when the guest has filled it.
    (!snooped.snoop.is_promise_due() || has(guest_ack, ring_nxt))
        && (!after(sacked_end, ring_nxt) || has(sacked_from, sacked_end))
}

/// When it left is a time of another host's clock, and its acknowledgement may be on its way: it counts
/// as sent again.
fn retained(waiting: Waiting, now_us: u32) -> Kept {
    let segment = waiting.segment();
    let (seq, end) = (segment.seq, sequence_end(segment));
    let fin = u8::from(u32::from(segment.flags) & sys::TCP_FIN != 0);
    let facts = Retained { seq, end, sent_us: now_us, again: 1, fin, ..Default::default() };
    Kept { waiting, facts }
}

impl Coming {
    /// None if there can be no such connection.
    fn read(now_ns: u64, row: &Travelling, fields: &Fields, frames: &mut Taken) -> Option<Self> {
        let it = row.flow.connection(fields)?;
        let key = FlowKey::new(it.guest, it.peer, it.vlan);
        let flow = it.state;
        let mut from_guest = |row| {
            let frame = frames.take(row)?;
            let parsed = parse(&frame, Direction::FromGuest).ok()?;
            (parsed.key == key).then_some(Waiting { frame, parsed })
        };
        let sent = row.sent.iter().map(|sent| Some((from_guest(sent.frame)?, sent.sacked)));
        let sent: Vec<(Waiting, bool)> = sent.collect::<Option<_>>()?;
        let queue: Vec<Waiting> =
            row.held.iter().map(|frame| from_guest(*frame)).collect::<Option<_>>()?;
        // In sequence, what is retained before snd_nxt and what is held behind. Of the first, a part may
        // be acknowledged; no other begins within the one before it.
        let mut next = flow.snd_una;
        for (place, (waiting, is_sent)) in sent
            .iter()
            .map(|(waiting, _)| (waiting, true))
            .chain(queue.iter().map(|it| (it, false)))
            .enumerate()
        {
            let segment = waiting.segment();
            let end = sequence_end(segment);
            let overlaps = is_sent && place > 0 && before(segment.seq, next);
            let is_next = !overlaps && after(end, next) && (is_sent != after(end, flow.snd_nxt));
            if !is_next || end.wrapping_sub(flow.snd_una) > i32::MAX as u32 {
                return None;
            }
            next = end;
        }
        let held = Held {
            hold: Hold(row.hold.as_ref().map(|hold| hold.raw()).unwrap_or_default()),
            latest: row.latest.map(|latest| Latest::from_row(&latest)).unwrap_or_default(),
            peer_tsval: row.peer_tsval,
            is_ack_due: row.is_ack_due,
            ..Held::default()
        };
        let has_hold = held.hold.0.begun != 0 || (sent.is_empty() && queue.is_empty());
        let is_state = u32::from(held.hold.0.state) <= sys::HOLD_DRAINING;
        let (snooped, copies) = match &row.snooped {
            Some(row) => snooped(now_ns, row, (&key, &flow), frames)?,
            None => (Snooped::default(), Vec::new()),
        };
        (has_hold && is_state).then_some(Coming { key, flow, held, snooped, sent, queue, copies })
    }
}

fn snooped(
    now_ns: u64,
    row: &SnoopedRow,
    (key, flow): (&FlowKey, &FlowState),
    frames: &mut Taken,
) -> Option<(Snooped, Vec<(Frame, Parsed)>)> {
    let mut to_guest = |row| {
        let frame = frames.take(row)?;
        let parsed = parse(&frame, Direction::ToGuest).ok()?;
        (parsed.key == *key).then_some((frame, parsed))
    };
    let copies = row.copies.iter().map(|frame| to_guest(*frame)).collect::<Option<_>>()?;
    let mut snooped = Snooped::from_row(row)?;
    if let Some(accepted) = row.accepted {
        let take = |row| to_guest(row).map(|(frame, _)| frame);
        snooped.accepted = Accepted::from_row(now_ns, accepted, take)?;
    }
    if let Some((seq, fin)) = row.fin {
        snooped.fin = Some((seq, to_guest(fin)?.0));
    }
    let Snoop(sys::vcc_snoop { begun, guest_ack, guest_edge, irs_nxt, .. }) = snooped.snoop;
    let is_untouched = guest_ack == irs_nxt && guest_edge == guest_ack;
    let is_open = u32::from(flow.stage) == sys::STAGE_ESTABLISHED && !flow.has(sys::FLOW_FIN_GUEST);
    let is_state = (!snooped.accepted.is_live() || begun != 0)
        && (!snooped.accepted.is_waiting() || (is_untouched && is_open));
    is_state.then_some((snooped, copies))
}
