//! A port that acknowledges what it holds, and owns its delivery (`engine/split.h`).

use std::sync::Arc;

use vcc_engine::{Segment, sys};

use super::Port;
use super::ended::Ended;
use crate::bare::Bare;
use crate::frame::{Direction, Frame, Out, Verdict};
use crate::key::FlowKey;
use crate::ledger::{Ledger, Promise};
use crate::parse::Parsed;
use crate::wire::*;

/// The ledger, if there is one, and its free slots.
#[derive(Clone, Default)]
pub(super) struct Promises {
    ledger: Option<Arc<dyn Ledger>>,
    free: Vec<usize>,
    slots: usize,
    /// Connections of which an acknowledgement is due.
    due: Vec<FlowKey>,
    ended: Ended,
}

impl Promises {
    fn write(&mut self, slot: &mut Option<usize>, promise: Option<&Promise>) {
        let Some(ledger) = &self.ledger else { return };
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
}

impl Port {
    /// From now on, the port keeps its promises in a ledger.
    pub fn keep_ledger(&mut self, ledger: Arc<dyn Ledger>) {
        self.promises.ledger = Some(ledger);
    }

    /// Ends the connections of another port's ledger, which did not end in order.
    pub fn end_promises(
        &mut self,
        now_ns: u64,
        promises: impl IntoIterator<Item = Promise>,
        out: &mut Out,
    ) {
        self.note_time(now_ns);
        for promise in promises {
            self.end_promise(&promise, out);
        }
    }

    /// Ends the connections whose promises will not be kept, because the port is about to end.
    pub fn end(&mut self, now_ns: u64, out: &mut Out) {
        self.note_time(now_ns);
        let keys: Vec<_> = self.table.iter().map(|(key, _)| *key).collect();
        for key in keys {
            self.break_promise(&key, out);
        }
    }

    /// Ends a connection of which the guest has been promised what cannot be delivered.
    pub(super) fn break_promise(&mut self, key: &FlowKey, out: &mut Out) {
        let Some(promise) = self.promise_of(key) else { return };
        self.forget(key);
        self.end_promise(&promise, out);
    }

    fn end_promise(&mut self, promise: &Promise, out: &mut Out) {
        promise.reset(out);
        self.promises.ended.add(self.now_ns, promise.key);
    }

    fn promise_of(&mut self, key: &FlowKey) -> Option<Promise> {
        let neighbour = *self.emitter.neighbours.of(key)?;
        let (flow, held) = self.table.holding(key)?;
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
    pub(super) fn record(&mut self, key: &FlowKey) {
        if self.promises.ledger.is_none() {
            return;
        }
        let promise = self.promise_of(key);
        if let Some((_, held)) = self.table.holding(key) {
            self.promises.write(&mut held.slot, promise.as_ref());
        }
    }

    /// Answers a segment without a flow if its connection was ended.
    ///
    /// # Errors
    /// It is answered with a RST: the verdict for it.
    pub(super) fn refuse_ended(
        &mut self,
        direction: Direction,
        frame: &Frame,
        parsed: &Parsed,
        out: &mut Out,
    ) -> Result<(), Verdict> {
        let Parsed { key, segment, .. } = parsed;
        let flags = u32::from(segment.flags);
        if flags & sys::TCP_SYN != 0 {
            self.promises.ended.remove(key);
        }
        if flags & sys::TCP_RST != 0 || !self.promises.ended.has(self.now_ns, key) {
            return Ok(());
        }
        // RFC 9293, 3.10.7.1.
        let [to, from] = [0, MAC_BYTES].map(|at| {
            let mut mac = [0; MAC_BYTES];
            mac.copy_from_slice(&frame.bytes[at..at + MAC_BYTES]);
            mac
        });
        let (answer, guest_mac, next_hop_mac, queue) = match direction {
            Direction::FromGuest => (Direction::ToGuest, from, to, &mut out.to_guest),
            Direction::ToGuest => (Direction::FromGuest, to, from, &mut out.to_fabric),
        };
        let reset = Bare {
            direction: answer,
            seq: segment.ack,
            ack: 0,
            flags: sys::TCP_RST,
            window: 0,
            timestamps: None,
        };
        queue.push(reset.frame(key, &sys::vcc_neighbour { guest_mac, next_hop_mac }));
        Err(Verdict::Drop)
    }

    /// After a segment of the guest: promises what the port has of it. The acknowledgement is due at
    /// once, in the next call of [`Port::advance`], so that one answers all that the guest has sent.
    pub(super) fn promise(&mut self, key: &FlowKey, said: &Segment) {
        if self.emitter.neighbours.of(key).is_none() {
            return;
        }
        let Some((flow, held)) = self.table.holding(key) else { return };
        let end = match held.queue.back() {
            Some(last) => last.segment.seq.wrapping_add(last.segment.payload_bytes),
            None => flow.snd_nxt.wrapping_sub(flow.has(sys::FLOW_FIN_GUEST).into()),
        };
        let is_due = flow.split_promises(&mut held.hold, &self.buffer, &self.params, said, end);
        if is_due && !std::mem::replace(&mut held.is_ack_due, true) {
            self.promises.due.push(*key);
        }
        self.record(key);
    }

    /// When an acknowledgement is due.
    pub(super) fn next_ack_ns(&self) -> Option<u64> {
        (!self.promises.due.is_empty()).then_some(self.now_ns)
    }

    /// Sends the acknowledgements that are due.
    pub(super) fn send_acks(&mut self, out: &mut Out) {
        for key in std::mem::take(&mut self.promises.due) {
            let Some(neighbour) = self.emitter.neighbours.of(&key) else { continue };
            let Some((flow, held)) = self.table.holding(&key) else { continue };
            if !std::mem::take(&mut held.is_ack_due) || held.hold.0.promises == 0 {
                continue;
            }
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

    /// Notes the peer's timestamp, for acknowledgements in its name.
    pub(super) fn note_stamp(&mut self, frame: &Frame, parsed: &Parsed) {
        if u32::from(self.params.0.act) != sys::ACT_SPLIT {
            return;
        }
        let Some((flow, held)) = self.table.holding(&parsed.key) else { return };
        let is_syn = u32::from(parsed.segment.flags) & sys::TCP_SYN != 0;
        if is_syn || flow.hears(&parsed.segment) {
            held.peer_tsval = parsed.tsval(frame);
        }
    }
}
