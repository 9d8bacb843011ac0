//! A port that acknowledges what it holds, and owns its delivery (`engine/split.h`).

use std::sync::Arc;

use vcc_engine::{Act, FlowState, Params, Segment, sys};

use super::Port;
use super::accepting::end_of_handshake;
use super::core::Core;
use super::ended::{Ended, Fate};
use crate::empty_segment::Bare;
use crate::frame::{Direction, Frame, Out, Verdict};
use crate::hold::Held;
use crate::ledger::{Ledger, Promise};
use crate::neighbours;
use crate::parse::Parsed;
use crate::table::{Entry, FlowId};
use vcc_engine::FlowKey;
use vcc_net::seq::after;

/// What was promised in peers' names, and to which connections it could not be kept.
#[derive(Clone, Default)]
pub(super) struct Split {
    /// Memory for the promises, and its free slots.
    ledger: Option<Arc<dyn Ledger>>,
    /// Why nothing is promised, even if the treatment promises.
    withheld: Option<Arc<str>>,
    /// Another port may have the promises: the ledger has none.
    is_suspended: bool,
    /// No promise of another port is taken over without a ledger.
    requires_ledger: bool,
    free: Vec<usize>,
    slots: usize,
    /// Connections of which an acknowledgement is due.
    due: Vec<FlowKey>,
    ended: Ended,
}

/// A promise that is not kept.
pub(super) struct Broken {
    pub promise: Promise,
    starts: Vec<u32>,
}

impl Broken {
    /// What to report if the connection ends now. None if nothing was promised.
    pub(super) fn find(core: &Core, id: FlowId) -> Option<Self> {
        let promise = promise_of(core, id)?;
        let Entry { held, .. } = core.table.get(id)?;
        Some(Broken { promise, starts: held.sent.starts().collect() })
    }

    pub(super) fn reset(&self, out: &mut Out) {
        self.promise.reset(self.starts.iter().copied(), out);
    }
}

impl Split {
    fn write(&mut self, slot: &mut Option<usize>, promise: Option<&Promise>) {
        let Some(ledger) = &self.ledger else { return };
        // A slot that was written before is cleared.
        if self.is_suspended && promise.is_some() {
            return;
        }
        if promise.is_some() && slot.is_none() {
            *slot = self.free.pop().or_else(|| {
                self.slots += 1;
                Some(self.slots - 1)
            });
        }
        let Some(place) = *slot else { return };
        ledger.write(place, promise);
        if promise.is_none() {
            self.free.extend(slot.take());
        }
    }

    /// The connection is gone, or another port has its promise.
    pub(super) fn clear(&mut self, slot: &mut Option<usize>) {
        self.write(slot, None);
    }

    /// The connection was ended. The ledger has it as long as its ends may ask.
    pub(super) fn refuse(&mut self, core: &Core, promise: Promise, mut slot: Option<usize>) {
        self.let_go(&promise.key);
        self.write(&mut slot, Some(&promise));
        self.ended.add(core.now_ns, promise, slot);
        self.forget_ended(core);
    }

    /// A new connection has the key.
    fn let_go(&mut self, key: &FlowKey) {
        if let Some(mut refused) = self.ended.remove(key) {
            self.clear(&mut refused.slot);
        }
    }

    /// Those whose time is over, and the oldest of too many.
    pub(super) fn forget_ended(&mut self, core: &Core) {
        while let Some(mut refused) = self.ended.forget(core.now_ns, core.table.max_flows()) {
            self.clear(&mut refused.slot);
        }
    }

    /// The port has answered a SYN between the ends of a connection that was ended.
    pub(super) fn note_answer(&mut self, key: &FlowKey, answer: &Segment) {
        if let Some(refused) = self.ended.get(key) {
            let _ = refused.judge(Direction::FromGuest, answer);
        }
    }

    /// The connections that were ended and are remembered.
    pub(super) fn ended(&self) -> impl Iterator<Item = &Promise> {
        self.ended.iter().map(|refused| &refused.promise)
    }

    pub(super) fn ack_is_due(&mut self, key: FlowKey) {
        self.due.push(key);
    }

    pub(super) fn suspend(&mut self) {
        let mut ended = std::mem::take(&mut self.ended);
        ended.iter_mut().for_each(|refused| self.clear(&mut refused.slot));
        self.ended = ended;
        self.is_suspended = true;
    }

    /// The flows' promises must be written as well.
    pub(super) fn resume(&mut self) {
        self.is_suspended = false;
        self.write_ended();
    }

    pub(super) fn has_gone(&mut self) {
        self.suspend();
        self.ended = Ended::default();
        self.due.clear();
        self.is_suspended = false;
    }

    fn keep_ledger(&mut self, ledger: Arc<dyn Ledger>) {
        self.ledger = Some(ledger);
        self.withheld = None;
        self.write_ended();
    }

    fn promise_nothing(&mut self, why: &str) {
        self.ledger = None;
        self.withheld = Some(why.into());
    }

    /// Would promises that a guest brings be lost in silence if this process were killed?
    pub(super) fn lacks_ledger(&self) -> bool {
        self.requires_ledger && self.ledger.is_none()
    }

    fn why_nothing(&self) -> Option<&str> {
        self.withheld.as_deref()
    }

    fn write_ended(&mut self) {
        let mut ended = std::mem::take(&mut self.ended);
        for refused in ended.iter_mut() {
            self.write(&mut refused.slot, Some(&refused.promise));
        }
        self.ended = ended;
    }

    /// Writes down what is promised on a connection.
    #[inline]
    pub(super) fn record(&mut self, core: &mut Core, id: FlowId) {
        if self.ledger.is_none() {
            return;
        }
        let promise = promise_of(core, id);
        if let Some(entry) = core.table.get_mut(id) {
            self.write(&mut entry.held.slot, promise.as_ref());
        }
    }

    /// Answers a segment of a connection that was ended. One that belongs to a new connection of the
    /// same ends passes.
    ///
    /// # Errors
    /// It is answered with a RST: the verdict for it.
    #[inline]
    pub(super) fn refuse_ended(
        &mut self,
        core: &Core,
        direction: Direction,
        frame: &Frame,
        parsed: &Parsed,
        out: &mut Out,
    ) -> Result<(), Verdict> {
        let Parsed { key, segment, .. } = parsed;
        if self.ended.is_empty() {
            return Ok(());
        }
        self.forget_ended(core);
        let Some(refused) = self.ended.get(key) else { return Ok(()) };
        match refused.judge(direction, segment) {
            Fate::Pass => return Ok(()),
            Fate::Begins => {
                self.let_go(key);
                return Ok(());
            }
            Fate::Refuse => {}
        }
        // RFC 9293, 3.10.7.1.
        let neighbour = neighbours::between(direction, &frame.bytes);
        let (answer, queue) = match direction {
            Direction::FromGuest => (Direction::ToGuest, &mut out.to_guest),
            Direction::ToGuest => (Direction::FromGuest, &mut out.to_fabric),
        };
        queue.push(Bare::reset(answer, segment.ack).frame(key, &neighbour));
        Err(Verdict::Drop)
    }

    /// After a segment of the guest: promises what the port has of it. The acknowledgement is due at
    /// once, in the next call of [`Port::advance`], so that one answers all that the guest has sent.
    pub(super) fn promise(&mut self, core: &mut Core, id: FlowId, said: &Segment) {
        let Some(Entry { key, state: flow, held, .. }) = core.table.get_mut(id) else { return };
        if held.latest.neighbour().is_none() {
            return;
        }
        let end = data_end(flow, held);
        let mut params: Params = *core.treatments.params_of(flow);
        if self.withheld.is_some() {
            params.0.act = Act::Hold.number();
        }
        let is_due = flow.split_promises(&mut held.hold, &core.buffer, &params, said, end);
        if is_due && !std::mem::replace(&mut held.is_ack_due, true) {
            self.due.push(*key);
        }
        self.record(core, id);
    }

    /// After a segment of the peer, which may have made room: promises what the port has and did not promise for lack
    /// of it, or the guest would wait until the peer has it.
    #[inline]
    pub(super) fn promise_rest(&mut self, core: &mut Core, id: FlowId) {
        let Some(Entry { state: flow, held, .. }) = core.table.get(id) else { return };
        let hold = &held.hold.0;
        if hold.promises != 0 && after(data_end(flow, held), hold.promised) {
            // The guest repeats nothing.
            let said = Segment { seq: hold.promised, ..Segment::default() };
            self.promise(core, id, &said);
        } else {
            self.record(core, id);
        }
    }

    /// When the RSTs of a connection that was ended are due again.
    pub(super) fn next_reset_ns(&self) -> Option<u64> {
        self.ended.next_ns()
    }

    /// When an acknowledgement is due.
    pub(super) fn next_ack_ns(&self, core: &Core) -> Option<u64> {
        (!self.due.is_empty()).then_some(core.now_ns)
    }

    /// The connections of which an acknowledgement is due, which [`Split::ack`] makes.
    pub(super) fn take_due(&mut self) -> Vec<FlowKey> {
        std::mem::take(&mut self.due)
    }

    /// The acknowledgement for the guest of a connection, if it is still due.
    pub(super) fn ack(core: &mut Core, id: FlowId) -> Option<Frame> {
        let Entry { key, state: flow, held, .. } = core.table.get_mut(id)?;
        if !std::mem::take(&mut held.is_ack_due) || held.hold.0.promises == 0 {
            return None;
        }
        let neighbour = held.latest.neighbour()?;
        let ack = Bare {
            direction: Direction::ToGuest,
            seq: flow.rcv_nxt,
            ack: held.hold.0.promised,
            flags: sys::TCP_ACK,
            window: flow.window_shown,
            timestamps: held.peer_tsval.and_then(|tsval| held.latest.answered_by(tsval)),
        };
        Some(ack.frame(key, neighbour))
    }

    /// Notes the peer's timestamp, for acknowledgements in its name: of a SYN with which a connection
    /// begins, or the latest that the guest `hears` (PAWS; RFC 7323, 5). While the port has nothing to
    /// say, it does not know what the guest discards.
    #[inline]
    pub(super) fn note_stamp(core: &mut Core, id: FlowId, parsed: &Parsed, hears: bool) {
        let speaks = core.table.get(id).is_some_and(|entry| core.speaks(entry));
        let Some(Entry { state: flow, held, .. }) = core.table.get_mut(id) else { return };
        let is_syn = u32::from(parsed.segment.flags) & sys::TCP_SYN != 0;
        if is_syn && flow.settled == 0 {
            held.peer_tsval = parsed.tsval();
        } else if hears
            && speaks
            && let Some(tsval) = parsed.tsval()
        {
            let latest = held.peer_tsval.get_or_insert(tsval);
            if after(tsval, *latest) {
                *latest = tsval;
            }
        }
    }
}

/// One past the last byte that the port has of the guest's data, without a FIN.
fn data_end(flow: &FlowState, held: &Held) -> u32 {
    match held.queue.back() {
        Some(last) => {
            let Segment { seq, payload_bytes, .. } = *last.segment();
            seq.wrapping_add(payload_bytes)
        }
        None => flow.snd_nxt.wrapping_sub(flow.has(sys::FLOW_FIN_GUEST).into()),
    }
}

/// None: neither end has been promised what is not at the other.
pub(super) fn promise_of(core: &Core, id: FlowId) -> Option<Promise> {
    let entry = core.table.get(id)?;
    let Entry { key, state: flow, held, snooped, .. } = entry;
    let (owes_stored, depends) = (snooped.owes_stored(), entry.depends());
    if !owes_stored && !depends && !flow.split_owes(&held.hold) {
        return None;
    }
    let neighbour = match held.latest.neighbour() {
        Some(neighbour) => *neighbour,
        None if owes_stored || depends => snooped.headers.neighbour(),
        None => return None,
    };
    let guests_offset = snooped.accepted.offsets().map_or(0, |offsets| offsets.seq);
    Some(Promise {
        key: *key,
        guest_mac: neighbour.guest_mac,
        next_hop_mac: neighbour.next_hop_mac,
        snd_una: flow.snd_una,
        snd_nxt: flow.snd_nxt,
        promised: held.hold.split_ack(flow.snd_una).wrapping_sub(guests_offset),
        rcv_nxt: if owes_stored { snooped.snoop.given_nxt() } else { flow.rcv_nxt },
    })
}

impl Port {
    /// From now on, the port keeps its promises in a ledger, which is empty.
    pub fn keep_ledger(&mut self, ledger: Arc<dyn Ledger>) {
        self.split.keep_ledger(ledger);
        self.snooping.withhold(false);
    }

    /// From now on, the port promises nothing, for this reason, until it [has a ledger](Self::keep_ledger):
    /// `split` is `hold` with `retransmit`, and `receive = "buffer"` is `ring`. What was promised before
    /// is kept.
    pub fn promise_nothing(&mut self, why: &str) {
        self.split.promise_nothing(why);
        self.snooping.withhold(true);
    }

    /// From now on, a guest that brings promises from another host is refused, unless the port [has a
    /// ledger](Self::keep_ledger) (law 16).
    pub fn require_ledger(&mut self) {
        self.split.requires_ledger = true;
    }

    /// Why it promises nothing; None: its treatment decides.
    pub fn why_nothing_is_promised(&self) -> Option<&str> {
        self.split.why_nothing()
    }

    /// The slots that a ledger has to have: for flows, and for as many that were ended.
    pub fn ledger_slots(&self) -> usize {
        2 * self.core.table.max_flows()
    }

    /// Ends the connections of another port's ledger, which did not end in order.
    pub fn end_promises(
        &mut self,
        now_ns: u64,
        promises: impl IntoIterator<Item = Promise>,
        out: &mut Out,
    ) {
        self.core.note_time(now_ns);
        for promise in promises {
            promise.reset([], out);
            self.split.refuse(&self.core, promise, None);
        }
    }

    /// Ends the connections whose promises will not be kept, because the port is about to end. The
    /// ledger has them to be refused by the next one.
    pub fn end(&mut self, now_ns: u64, out: &mut Out) {
        self.core.note_time(now_ns);
        let place = out.to_guest.len();
        self.thinning.end(&mut self.core, &mut out.to_guest);
        self.ack_pacing.end(&mut out.to_guest);
        self.show(place, out);
        for id in self.core.table.ids() {
            self.break_promise(id, out);
        }
        self.split.forget_ended(&self.core);
    }

    /// Ends a connection of which the guest has been promised what cannot be delivered.
    pub(super) fn break_promise(&mut self, id: FlowId, out: &mut Out) {
        let Some(broken) = Broken::find(&self.core, id) else { return };
        out.to_guest.extend(self.core.table.get(id).and_then(end_of_handshake));
        let slot = self.core.table.get_mut(id).and_then(|entry| entry.held.slot.take());
        self.forget(id);
        broken.reset(out);
        self.split.refuse(&self.core, broken.promise, slot);
    }

    /// Forgets a connection that nobody uses any more. What is promised is broken; without the port, the ends of an
    /// accepted one do not understand each other; of any other nobody is reset, because the guest has its own timers.
    pub(super) fn give_up(&mut self, id: FlowId, out: &mut Out) {
        let Some(entry) = self.core.table.get(id) else { return };
        let owes = entry.state.split_owes(&entry.held.hold) || entry.snooped.owes_stored();
        let params = *self.core.treatments.params_of(&entry.state);
        if owes || entry.depends() {
            self.break_promise(id, out);
        }
        self.core.table.leave_minisock(id, &params);
        self.forget(id);
    }

    /// Sends the RSTs again that are due.
    pub(super) fn reset_again(&mut self, out: &mut Out) {
        while let Some(promise) = self.split.ended.next_again(self.core.now_ns) {
            if self.core.table.find(&promise.key).is_none() {
                promise.reset([], out);
            }
        }
    }

    /// Sends the acknowledgements that are due.
    pub(super) fn send_acks(&mut self, out: &mut Out) {
        for key in self.split.take_due() {
            let Some(id) = self.core.table.find(&key) else { continue };
            self.thinning.hand_over(&mut self.core, id, &mut out.to_guest);
            out.to_guest.extend(Split::ack(&mut self.core, id));
        }
    }
}
