//! A port that acknowledges what it holds, and owns its delivery (`engine/split.h`).

use std::sync::Arc;

use vcc_engine::{Act, Params, Segment, sys};

use super::Port;
use super::ended::{Ended, Fate};
use crate::empty_segment::Bare;
use crate::frame::{Direction, Frame, Out, Verdict};
use crate::ledger::{Ledger, Promise};
use crate::neighbours;
use crate::parse::Parsed;
use crate::table::{Entry, FlowId};
use vcc_engine::FlowKey;
use vcc_net::seq::after;

/// The ledger, if there is one, and its free slots.
#[derive(Clone, Default)]
pub(super) struct Promises {
    ledger: Option<Arc<dyn Ledger>>,
    /// Why nothing is promised, even if the treatment promises.
    withheld: Option<Arc<str>>,
    /// Another port may have the promises: the ledger has none.
    is_suspended: bool,
    free: Vec<usize>,
    slots: usize,
    /// Connections of which an acknowledgement is due.
    due: Vec<FlowKey>,
    ended: Ended,
}

/// A promise that is not kept.
pub(super) struct Broken {
    promise: Promise,
    starts: Vec<u32>,
}

impl Broken {
    pub(super) fn reset(&self, out: &mut Out) {
        self.promise.reset(self.starts.iter().copied(), out);
    }
}

impl Promises {
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

    /// The connection is gone.
    pub(super) fn clear(&mut self, slot: &mut Option<usize>) {
        self.write(slot, None);
    }

    /// The connection was ended. The ledger has it as long as its ends may ask.
    fn refuse(&mut self, now_ns: u64, max: usize, promise: Promise, mut slot: Option<usize>) {
        self.let_go(&promise.key);
        self.write(&mut slot, Some(&promise));
        self.ended.add(now_ns, promise, slot);
        self.forget_ended(now_ns, max);
    }

    /// A new connection has the key.
    fn let_go(&mut self, key: &FlowKey) {
        if let Some(mut refused) = self.ended.remove(key) {
            self.clear(&mut refused.slot);
        }
    }

    fn forget_ended(&mut self, now_ns: u64, max: usize) {
        while let Some(mut refused) = self.ended.forget(now_ns, max) {
            self.clear(&mut refused.slot);
        }
    }

    /// The connections that were ended and are remembered.
    pub(super) fn ended(&self) -> impl Iterator<Item = &Promise> {
        self.ended.iter().map(|refused| &refused.promise)
    }

    /// A connection that another port has ended.
    pub(super) fn remember(&mut self, now_ns: u64, max: usize, promise: Promise) {
        self.refuse(now_ns, max, promise, None);
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

    fn write_ended(&mut self) {
        let mut ended = std::mem::take(&mut self.ended);
        for refused in ended.iter_mut() {
            self.write(&mut refused.slot, Some(&refused.promise));
        }
        self.ended = ended;
    }
}

impl Port {
    /// From now on, the port keeps its promises in a ledger, which is empty.
    pub fn keep_ledger(&mut self, ledger: Arc<dyn Ledger>) {
        self.promises.keep_ledger(ledger);
    }

    /// From now on, the port promises nothing, for this reason, until it [has a ledger](Self::keep_ledger):
    /// `split` is `hold` with `retransmit`. What was promised before is kept.
    pub fn promise_nothing(&mut self, why: &str) {
        self.promises.ledger = None;
        self.promises.withheld = Some(why.into());
    }

    /// Why it promises nothing; None: its treatment decides.
    pub fn why_nothing_is_promised(&self) -> Option<&str> {
        self.promises.withheld.as_deref()
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
            self.refuse(promise, None);
        }
    }

    /// Ends the connections whose promises will not be kept, because the port is about to end. The
    /// ledger has them to be refused by the next one.
    pub fn end(&mut self, now_ns: u64, out: &mut Out) {
        self.core.note_time(now_ns);
        self.thinning.end(&mut self.core, &mut out.to_guest);
        for id in self.core.table.ids() {
            self.break_promise(id, out);
        }
        self.promises.forget_ended(now_ns, self.core.table.max_flows());
    }

    /// Ends a connection of which the guest has been promised what cannot be delivered.
    pub(super) fn break_promise(&mut self, id: FlowId, out: &mut Out) {
        let Some(broken) = self.breaking(id) else { return };
        let slot = self.core.table.get_mut(id).and_then(|entry| entry.held.slot.take());
        self.forget(id);
        broken.reset(out);
        self.refuse(broken.promise, slot);
    }

    fn refuse(&mut self, promise: Promise, slot: Option<usize>) {
        self.promises.refuse(self.core.now_ns, self.core.table.max_flows(), promise, slot);
    }

    /// The event to report if the connection ends now. None if nothing was promised.
    pub(super) fn breaking(&self, id: FlowId) -> Option<Broken> {
        let promise = self.promise_of(id)?;
        let Entry { held, .. } = self.core.table.get(id)?;
        Some(Broken { promise, starts: held.sent.starts().collect() })
    }

    fn promise_of(&self, id: FlowId) -> Option<Promise> {
        let Entry { key, state: flow, held, .. } = self.core.table.get(id)?;
        let neighbour = held.latest.neighbour()?;
        flow.split_owes(&held.hold).then(|| Promise {
            key: *key,
            guest_mac: neighbour.guest_mac,
            next_hop_mac: neighbour.next_hop_mac,
            snd_una: flow.snd_una,
            snd_nxt: flow.snd_nxt,
            promised: held.hold.0.promised,
            rcv_nxt: flow.rcv_nxt,
        })
    }

    /// Writes down what is promised on a connection.
    pub(super) fn record(&mut self, id: FlowId) {
        if self.promises.ledger.is_none() {
            return;
        }
        let promise = self.promise_of(id);
        if let Some(entry) = self.core.table.get_mut(id) {
            self.promises.write(&mut entry.held.slot, promise.as_ref());
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
        direction: Direction,
        frame: &Frame,
        parsed: &Parsed,
        out: &mut Out,
    ) -> Result<(), Verdict> {
        let Parsed { key, segment, .. } = parsed;
        if self.promises.ended.is_empty() {
            return Ok(());
        }
        self.promises.forget_ended(self.core.now_ns, self.core.table.max_flows());
        let Some(refused) = self.promises.ended.get(key) else { return Ok(()) };
        match refused.judge(direction, segment) {
            Fate::Pass => return Ok(()),
            Fate::Begins => {
                self.promises.let_go(key);
                return Ok(());
            }
            Fate::Refuse => {}
        }
        // RFC 9293, 3.10.7.1.
        let mut neighbour = neighbours::beside(&frame.bytes);
        let (answer, queue) = match direction {
            Direction::FromGuest => (Direction::ToGuest, &mut out.to_guest),
            Direction::ToGuest => {
                std::mem::swap(&mut neighbour.guest_mac, &mut neighbour.next_hop_mac);
                (Direction::FromGuest, &mut out.to_fabric)
            }
        };
        let reset = Bare {
            direction: answer,
            seq: segment.ack,
            ack: 0,
            flags: sys::TCP_RST,
            window: 0,
            timestamps: None,
        };
        queue.push(reset.frame(key, &neighbour));
        Err(Verdict::Drop)
    }

    /// After a segment of the guest: promises what the port has of it. The acknowledgement is due at
    /// once, in the next call of [`Port::advance`], so that one answers all that the guest has sent.
    pub(super) fn promise(&mut self, id: FlowId, said: &Segment) {
        let Some(Entry { key, state: flow, held, .. }) = self.core.table.get_mut(id) else {
            return;
        };
        if held.latest.neighbour().is_none() {
            return;
        }
        let end = match held.queue.back() {
            Some(last) => {
                let Segment { seq, payload_bytes, .. } = *last.segment();
                seq.wrapping_add(payload_bytes)
            }
            None => flow.snd_nxt.wrapping_sub(flow.has(sys::FLOW_FIN_GUEST).into()),
        };
        let mut params: Params = *self.core.treatments.of(flow);
        if self.promises.withheld.is_some() {
            params.0.act = Act::Hold.number();
        }
        let is_due = flow.split_promises(&mut held.hold, &self.core.buffer, &params, said, end);
        if is_due && !std::mem::replace(&mut held.is_ack_due, true) {
            self.promises.due.push(*key);
        }
        self.record(id);
    }

    /// When an acknowledgement is due.
    pub(super) fn next_ack_ns(&self) -> Option<u64> {
        (!self.promises.due.is_empty()).then_some(self.core.now_ns)
    }

    /// Sends the acknowledgements that are due.
    pub(super) fn send_acks(&mut self, out: &mut Out) {
        for key in std::mem::take(&mut self.promises.due) {
            let Some(id) = self.core.table.find(&key) else { continue };
            self.thinning.hand_over(&mut self.core, id, &mut out.to_guest);
            let Some(Entry { state: flow, held, .. }) = self.core.table.get_mut(id) else {
                continue;
            };
            if !std::mem::take(&mut held.is_ack_due) || held.hold.0.promises == 0 {
                continue;
            }
            let Some(neighbour) = held.latest.neighbour() else { continue };
            let ack = Bare {
                direction: Direction::ToGuest,
                seq: flow.rcv_nxt,
                ack: held.hold.0.promised,
                flags: sys::TCP_ACK,
                window: flow.window_shown,
                timestamps: held.peer_tsval.and_then(|tsval| held.latest.answered_by(tsval)),
            };
            out.to_guest.push(ack.frame(&key, neighbour));
        }
    }

    /// Notes the peer's timestamp, for acknowledgements in its name: of a SYN with which a connection
    /// begins, or the latest that the guest `hears` (PAWS; RFC 7323, 5). While the port has nothing to
    /// say, it does not know what the guest discards.
    pub(super) fn note_stamp(&mut self, id: FlowId, parsed: &Parsed, hears: bool) {
        let speaks = self.core.table.get(id).is_some_and(|entry| self.speaks(entry));
        let Some(Entry { state: flow, held, .. }) = self.core.table.get_mut(id) else { return };
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
