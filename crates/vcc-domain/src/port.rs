//! A port: parse, look up, engine, rewrite.
//!
//! It is a core, which all share, and parts, which see the core but no sibling. The port passes a frame
//! through them, and does what concerns several.

mod accepting;
mod ack_pacing;
mod core;
mod corrupt;
mod ended;
mod granting;
mod holding;
mod intervals;
mod judging;
mod moving;
mod pacing;
mod path_mtu;
mod receive_ring;
mod recording;
mod repairing;
mod sending;
mod snooping;
mod splitting;
mod thinning;

use self::core::Core;
pub use accepting::IsnHash;
use accepting::{Accepting, repeats_handshake};
use ack_pacing::AckPacing;
pub use granting::Grant;
use holding::{Holding, ends_held};
use intervals::Intervals;
pub use moving::Arrived;
use receive_ring::Stored;
use recording::Recorder;
use repairing::Repair;
use snooping::Snooping;
use splitting::{Broken, Split};
pub use thinning::ReceiveRing;
use thinning::Thinning;
use vcc_engine::{Action, Delays, FlowState, Params, Segment, is_crowded, sys};

use crate::counters::Counters;
use crate::emit::{Emitter, Unsent};
use crate::fack;
use crate::frame::{Direction, Frame, Out, Verdict};
use crate::hold::{BufferSpec, set_seq};
use crate::parse::{Parsed, parse, parse_into};
use crate::receipt::{Receipt, note_rewritten};
use crate::rewrite::rewrite;
use crate::table::{Entry, FlowId};
use crate::timer::{self, NS_PER_MS};
use vcc_engine::FlowKey;

const NS_PER_US: u64 = 1000;
const NS_PER_S: u64 = 1_000_000_000;
/// A closed connection whose guest has not acknowledged what was promised, or an accepted one whose last
/// data or FIN one end lacks, is ended after such a silence of both: longer than between retransmissions
/// of either (RFC 6298, 2.5).
const UNFINISHED_MS: u32 = 127_000;
const UNFINISHED_LOOK_MS: u32 = 1000;

/// As the engine has the time since when there is a port.
fn seconds(ns: u64) -> u32 {
    (ns / NS_PER_S) as u32
}

/// The host side of one guest's card.
///
/// Time is in ns of any monotonic clock; it may stand still.
#[derive(Clone)]
pub struct Port {
    core: Core,
    hold: Holding,
    intervals: Intervals,
    emitter: Emitter,
    repair: Repair,
    split: Split,
    snooping: Snooping,
    accepting: Accepting,
    thinning: Thinning,
    ack_pacing: AckPacing,
    recorder: Recorder,
}

/// The engine's verdict on a segment, besides its action.
struct Judged {
    /// It has an acknowledgement for the guest, which accepts it.
    hears: bool,
    /// It is a RST that its receiver believes.
    is_reset: bool,
}

impl Port {
    /// New connections beyond `max_flows` pass untranslated, or are dropped if `params` demand it.
    pub fn new(params: Params, max_flows: usize) -> Self {
        Self::with_buffer(params, max_flows, BufferSpec::default())
    }

    /// With a buffer of this kind for what is held.
    pub fn with_buffer(params: Params, max_flows: usize, buffer: BufferSpec) -> Self {
        let mut port = Port {
            core: Core::new(params, max_flows, buffer.empty()),
            hold: Holding::default(),
            intervals: Intervals::default(),
            emitter: Emitter::default(),
            repair: Repair::default(),
            split: Split::default(),
            snooping: Snooping::default(),
            accepting: Accepting::default(),
            thinning: Thinning::default(),
            ack_pacing: AckPacing::default(),
            recorder: Recorder::default(),
        };
        port.note_treatments();
        port
    }

    /// A frame from the guest to the fabric. `out` receives frames that follow it: a FACK, what was
    /// held, a window update.
    pub fn from_guest(&mut self, now_ns: u64, frame: &mut Frame, out: &mut Out) -> Verdict {
        self.core.note_time(now_ns);
        let place = out.to_guest.len();
        let verdict = self.take_from_guest(frame, out);
        self.show(place, out);
        verdict
    }

    #[inline(always)]
    fn take_from_guest(&mut self, frame: &mut Frame, out: &mut Out) -> Verdict {
        let parsed = &mut Parsed::default();
        if let Err(reason) = parse_into(frame, Direction::FromGuest, parsed) {
            let untouched = self.core.unread(frame, reason);
            if untouched == Verdict::Pass && reason == sys::COUNT_FRAGMENT {
                self.adjust_fragment(frame);
                self.fragment_from_guest(frame);
            }
            return untouched;
        }
        let id = match self.find_or_create(Direction::FromGuest, frame, parsed, out) {
            Ok(id) => id,
            Err(untouched) => return untouched,
        };
        if self.accepting.is_on()
            && let Some(verdict) = self.adjust_from_guest(id, (frame, parsed), out)
        {
            return verdict;
        }
        // It runs, so it reads.
        self.thinning.hand_over(&mut self.core, id, &mut out.to_guest);
        let to_guest = &mut out.to_guest;
        let absorbs = self.snooping.absorb(&mut self.core, id, (frame, parsed), to_guest);
        if self.snooping.is_on() {
            self.snooping.give(&mut self.core, id, to_guest);
            self.split.record(&mut self.core, id);
        }
        if absorbs {
            // Held frames must not leave with older timestamps than those of an answer.
            Holding::note_latest(&mut self.core, id, frame, parsed);
            return Verdict::Held;
        }
        if Holding::is_holding(&self.core, id) {
            let said = parsed.segment;
            let verdict = self.hold_from_guest(id, frame, parsed, out);
            self.put_in_order(id, out);
            self.split.promise(&mut self.core, id, &said);
            self.core.settle_grant(id);
            return verdict;
        }
        self.leave(id, frame, parsed, out)
    }

    /// A frame from the fabric to the guest. `out` receives what it lets go. If the frame passes,
    /// [`Port::placed`] takes the receipt.
    pub fn to_guest(
        &mut self,
        now_ns: u64,
        frame: &mut Frame,
        out: &mut Out,
    ) -> (Verdict, Receipt) {
        self.core.note_time(now_ns);
        let place = out.to_guest.len();
        let mut read = Parsed::default();
        let (verdict, is_read) = self.take_to_guest(frame, &mut read, out);
        self.show(place, out);
        let (verdict, is_same) = self.show_passing(verdict, frame);
        let is_wanted = verdict == Verdict::Pass && self.snooping.is_on();
        if !(is_wanted && is_read && is_same) {
            return (verdict, Receipt::unread());
        }
        (verdict, Receipt::from_parsed(read))
    }

    /// Besides the verdict: is `parsed` what the frame is by now?
    #[inline(always)]
    fn take_to_guest(
        &mut self,
        frame: &mut Frame,
        parsed: &mut Parsed,
        out: &mut Out,
    ) -> (Verdict, bool) {
        if let Err(reason) = parse_into(frame, Direction::ToGuest, parsed) {
            let untouched = self.core.unread(frame, reason);
            self.hear_too_big(frame, out);
            return (untouched, false);
        }
        let id = match self.find_or_create(Direction::ToGuest, frame, parsed, out) {
            Ok(id) => id,
            Err(untouched) => return (untouched, false),
        };
        if self.core.is_corrupt(id, frame, parsed) {
            return (Verdict::Pass, false);
        }
        if self.accepting.is_on() && self.challenges(id, &parsed.segment, out) {
            return (Verdict::Drop, false);
        }
        let before = Repair::judge(&mut self.core, id);
        let last = self.thinning.last_shown(&self.core, id);
        let stores = self.snooping.stores(&self.core, id);
        let shown = if stores { Snooping::shown(&self.core, id) } else { None };
        let reset_seq = self.snooping.reset_seq(&self.core, id, parsed.segment.flags);
        let mut action = Action::default();
        let asked = self.ask_engine(Direction::ToGuest, id, &parsed.segment, &mut action, out);
        let Some(Judged { hears, is_reset }) = asked else {
            return (Verdict::Pass, false);
        };
        let passes = u32::from(action.verdict) == sys::VCC_PASS;
        Split::note_stamp(&mut self.core, id, parsed, hears);
        Repair::to_guest(&mut self.core, id, (frame, parsed), before, passes, hears);
        let mut verdict = self.carry_out(Direction::ToGuest, frame, parsed, &action);
        let mut is_read = verdict == Verdict::Pass && note_rewritten(parsed, &action);
        if verdict == Verdict::Pass && hears && stores {
            let stored = match is_read {
                true => self.store(id, (frame, parsed), shown, out),
                false => self.store_unread(id, frame, shown, out),
            };
            match stored {
                Stored::Passes => {}
                Stored::PassesChanged => is_read = false,
                Stored::Taken => verdict = Verdict::Held,
            }
        }
        if let Some(seq) = reset_seq.filter(|_| verdict == Verdict::Pass && is_reset) {
            is_read = false;
            move_to_seq(frame, seq);
        }
        if verdict == Verdict::Pass && hears {
            let to_guest = &mut out.to_guest;
            verdict =
                self.thinning.thin(&mut self.core, id, (frame, parsed), &action, last, to_guest);
        }
        if verdict == Verdict::Pass && action.delay_us > 0 {
            let due_ns = self.core.now_ns + u64::from(action.delay_us) * NS_PER_US;
            verdict = self.ack_pacing.delay(due_ns, frame);
        }
        if u32::from(parsed.segment.flags) & sys::TCP_SYN != 0 {
            self.snooping.peer_syn(&mut self.core, id, parsed, action.strip != 0);
            self.open(id, out);
            if self.accepting.is_on() && verdict == Verdict::Pass {
                self.accept(id, frame, out);
            }
        }
        if Holding::has_held(&self.core, id) {
            self.send_waiting(id, out);
        } else {
            self.core.settle_grant(id);
        }
        if self.thinning.is_crowded() {
            // A further ACK takes one of the few places left in the ring.
            self.split.record(&mut self.core, id);
        } else {
            self.split.promise_rest(&mut self.core, id);
        }
        (verdict, is_read)
    }

    /// The next deadline for [`Port::advance`]; None without flows. Frames and `advance` may change
    /// it.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        let looks = [
            self.core.table.next_look_ns(),
            self.emitter.next_look_ns(),
            self.repair.next_ns(),
            self.snooping.next_ns(),
            self.split.next_ack_ns(&self.core),
            self.split.next_reset_ns(),
            self.hold.next_ns(),
            self.intervals.next_ns(),
            self.thinning.next_ns(),
            self.ack_pacing.next_ns(),
        ];
        looks.into_iter().flatten().min()
    }

    /// Processes deadlines: flows time out and expire. With emission enabled, `to_guest` receives
    /// duplicate ACKs and window updates for the guest; they must not pass through
    /// [`Port::to_guest`] again. A late call processes everything that is due at once; an early one
    /// does nothing.
    pub fn advance(&mut self, now_ns: u64, out: &mut Out) {
        self.core.note_time(now_ns);
        let place = out.to_guest.len();
        self.advance_all(now_ns, out);
        self.show(place, out);
        debug_assert!(self.next_deadline_ns().is_none_or(|next_ns| next_ns > now_ns));
    }

    fn advance_all(&mut self, now_ns: u64, out: &mut Out) {
        // Before the engine infers the timeouts of flows that are not repaired here.
        self.advance_repairs(out);
        self.advance_snooping(out);
        self.send_acks(out);
        self.reset_again(out);
        self.thinning.advance(&mut self.core, &mut out.to_guest);
        self.ack_pacing.advance(now_ns, &mut out.to_guest);
        let to_guest = &mut out.to_guest;
        let table = &self.core.table;
        let flow_of = |key: &FlowKey| table.of_key(key).map(|entry| &entry.state);
        while let Some(unsent) = self.emitter.look_again(now_ns, flow_of, to_guest) {
            self.core.counters.count_unsent(unsent);
        }
        while let Some(id) = self.core.table.due(now_ns) {
            self.on_deadline(now_ns, id, out);
        }
        // Behind the timeouts, which reduce windows.
        self.advance_intervals(out);
        self.advance_pacing(out);
    }

    /// The flows, in order of their keys.
    pub fn flows(&self) -> impl Iterator<Item = (&FlowKey, &FlowState)> {
        self.core.table.iter().map(|entry| (&entry.key, &entry.state))
    }

    /// From now on, keeps the last state of each flow that is forgotten, until [`Port::take_forgotten`].
    pub fn keep_forgotten(&mut self) {
        self.core.table.keep_removed();
    }

    /// The flows that were forgotten since the last call, in that order.
    pub fn take_forgotten(&mut self) -> Vec<(FlowKey, FlowState)> {
        self.core.table.take_removed()
    }

    /// Connections whose flows were forgotten, and which a segment may revive.
    pub fn minisocks(&self) -> usize {
        self.core.table.minisocks()
    }

    /// The size of the flow table.
    pub fn max_flows(&self) -> usize {
        self.core.table.max_flows()
    }

    /// A flow; None if the port does not know it.
    pub fn flow(&self, key: &FlowKey) -> Option<&FlowState> {
        self.core.table.of_key(key).map(|entry| &entry.state)
    }

    /// Segments that were not translated, by reason.
    pub fn counters(&self) -> &Counters {
        &self.core.counters
    }

    /// What the round trips of all its connections waited for.
    pub fn delays(&self) -> &Delays {
        &self.core.delays
    }

    /// The parameters of the flows' treatment, while there are no rules.
    pub fn params(&self) -> &Params {
        self.core.treatments.single()
    }

    /// Changes the parameters, from the flows' next segments on.
    pub fn set_params(&mut self, params: Params) {
        self.core.treatments.set_single(params);
        self.note_treatments();
    }

    fn note_treatments(&mut self) {
        self.snooping.note_treatments(&self.core);
        self.accepting.note_treatments(&self.core);
        self.thinning.note_treatments(&self.core);
    }

    /// Finds or creates the flow of a frame that has come.
    ///
    /// # Errors
    /// The frame is not translated, which is counted: the verdict for it.
    #[inline(always)]
    fn find_or_create(
        &mut self,
        direction: Direction,
        frame: &Frame,
        parsed: &mut Parsed,
        out: &mut Out,
    ) -> Result<FlowId, Verdict> {
        parsed.segment.now_us = self.core.now_us();
        let is_syn = u32::from(parsed.segment.flags) & sys::TCP_SYN != 0;
        if is_syn && direction == Direction::FromGuest && self.emits() {
            self.emitter.neighbours.learn(&parsed.key, &frame.bytes);
        }
        let known = self.core.table.find(&parsed.key);
        let known =
            known.filter(|id| !(is_syn && self.ends_before_syn(*id, direction, &parsed.segment)));
        let is_ruled = self.core.treatments.epoch() != 0;
        let known = known.filter(|id| !is_ruled || self.settle_rule(*id));
        // Its guest has its own numbers, and the port has answered for it.
        let is_accepted = self.accepting.is_on()
            && direction == Direction::FromGuest
            && known.and_then(|id| self.core.table.get(id)).is_some_and(Entry::depends);
        if !is_accepted {
            self.split.refuse_ended(&self.core, direction, frame, parsed, out)?;
        }
        match known {
            Some(id) => Ok(id),
            None => self.core.create(direction, parsed),
        }
    }

    /// Does the port send segments of its own to the guest? Under rules, others may follow.
    fn emits(&self) -> bool {
        self.core.treatments.epoch() != 0
            || self.params().0.emit != 0
            || u32::from(self.params().0.act) != sys::ACT_WINDOW
    }

    /// Shows the guest its first window of the buffer, behind a SYN-ACK.
    fn open(&mut self, id: FlowId, out: &mut Out) {
        let Some(Entry { key, state: flow, held, .. }) = self.core.table.get_mut(id) else {
            return;
        };
        if flow.hold_opens(&held.hold, &self.core.buffer, self.core.treatments.params_of(flow)) {
            let unsent = self.emitter.update(key, flow, &mut out.to_guest);
            self.core.counters.count_unsent(unsent);
        }
    }

    /// Discards what is held for a connection that has ended, perhaps by a RST, or begins anew. Does
    /// that break promises?
    fn end_held(&mut self, id: FlowId, is_reset: bool) -> bool {
        let Some(Entry { state: flow, held, .. }) = self.core.table.get_mut(id) else {
            return true;
        };
        held.clear(&mut self.core.buffer);
        held.hold.0.promises = 0;
        let begins_anew = u32::from(flow.stage) < sys::STAGE_ESTABLISHED;
        if begins_anew {
            held.hold = Default::default();
        }
        let breaks = begins_anew || is_reset;
        if breaks {
            self.split.clear(&mut held.slot);
            self.thinning.drop_ack(&mut self.core, id);
        }
        self.snooping.note_end(&mut self.core, id, is_reset);
        if !breaks {
            // After both FINs, the guest may lack data that the peer believes delivered.
            self.split.record(&mut self.core, id);
        }
        breaks
    }

    fn forget(&mut self, id: FlowId) {
        self.snooping.forget(&mut self.core, id);
        self.thinning.drop_ack(&mut self.core, id);
        if let Some(Entry { state: flow, held, member, .. }) = self.core.table.get_mut(id) {
            self.core.treatments.leave(flow);
            self.core.pools.leave(flow, member);
            held.clear(&mut self.core.buffer);
            self.split.clear(&mut held.slot);
        }
        self.core.table.remove(id);
        if self.core.table.len() == 0 {
            self.core.spare.clear();
        }
    }

    /// A fragment of the guest passes.
    fn fragment_from_guest(&mut self, frame: &Frame) {
        let Some((id, segment)) = self.core.of_first_fragment(frame) else { return };
        if self.core.treatments.epoch() == 0 || self.settle_rule(id) {
            self.core.fragment_from_guest(id, &segment);
        }
    }

    /// `out` receives RSTs if a connection with promises gives way to another one.
    ///
    /// Inline, so that the action is used where the engine has written it: to move it right after
    /// costs as much as a third of the call.
    #[inline(always)]
    fn ask_engine(
        &mut self,
        direction: Direction,
        id: FlowId,
        segment: &Segment,
        action: &mut Action,
        out: &mut Out,
    ) -> Option<Judged> {
        let now_ns = self.core.now_ns;
        let is_syn = u32::from(segment.flags) & sys::TCP_SYN != 0;
        let begins = is_syn && !repeats_handshake(&self.core, id, segment);
        let broken = if begins { Broken::find(&self.core, id) } else { None };
        let judged = match direction {
            Direction::FromGuest => self.core.judge_from_guest(id, segment, action)?,
            Direction::ToGuest => {
                let before = self.recorder.before(&self.core, id, segment);
                let judged = self.core.judge_to_guest(id, segment, action)?;
                self.recorder.note(&mut self.core, id, segment, action, before);
                judged
            }
        };
        self.core.delays.count(action);
        if action.forget != 0 {
            self.forget(id);
            if let Some(broken) = broken {
                broken.reset(out);
            }
            return Some(judged);
        }
        let entry = self.core.table.get(id)?;
        let (look_ns, in_handshake) = (entry.look_ns(), entry.in_handshake());
        let Entry { state: flow, held, .. } = entry;
        let is_open = u32::from(flow.stage) == sys::STAGE_ESTABLISHED;
        let sooner_ns =
            timer::sooner_ns(flow, self.core.treatments.params_of(flow), now_ns, look_ns);
        if ends_held(flow, held, segment, judged.is_reset) {
            let breaks = self.end_held(id, judged.is_reset);
            if let Some(broken) = broken.filter(|_| breaks) {
                broken.reset(out);
            }
        }
        if in_handshake && is_open {
            self.core.table.end_handshake(id);
        }
        if let Some(sooner_ns) = sooner_ns {
            self.core.table.set_look(id, sooner_ns);
        }
        Some(judged)
    }

    fn carry_out(
        &mut self,
        direction: Direction,
        frame: &mut Frame,
        parsed: &Parsed,
        action: &Action,
    ) -> Verdict {
        if action.forged != 0 {
            self.core.counters.count(sys::COUNT_FORGED);
        }
        if action.one_direction != 0 {
            self.core.counters.count(sys::COUNT_ONE_DIRECTION);
        }
        if parsed.places.malformed {
            self.core.counters.count(sys::COUNT_BAD_OPTIONS);
        }
        match u32::from(action.verdict) {
            sys::VCC_PASS => {
                rewrite(frame, direction, parsed, action);
                debug_assert!(has_action_values(frame, direction, parsed, action));
                Verdict::Pass
            }
            sys::VCC_DROP => {
                self.core.counters.count(match u32::from(action.police) {
                    sys::POLICED_NOT => sys::COUNT_DROPPED,
                    sys::POLICED_UNKNOWN => sys::COUNT_UNKNOWN_DROPPED,
                    _ => sys::COUNT_POLICED,
                });
                Verdict::Drop
            }
            // A FACK, addressed to vcc.
            _ => Verdict::Drop,
        }
    }

    /// The FACK next to the frame, which has been rewritten.
    fn fack(
        &mut self,
        id: FlowId,
        frame: &Frame,
        parsed: &Parsed,
        action: &Action,
    ) -> Option<Frame> {
        // A FACK cannot carry BIG TCP's jumbo option (RFC 2675); the next report replaces it.
        if parsed.ip.length == 0 {
            self.core.counters.count(sys::COUNT_REPORT_LOST);
            return None;
        }
        let flow = &self.core.table.get(id)?.state;
        debug_assert!(action.feedback == flow.counted, "a report says what was counted");
        let ip_ecn = fack::ip_ecn(flow, self.core.treatments.params_of(flow), &parsed.segment);
        Some(fack::fack(frame, parsed, &action.feedback, ip_ecn))
    }

    /// The flow's deadline expired.
    fn on_deadline(&mut self, now_ns: u64, id: FlowId, out: &mut Out) {
        self.core.spare.release_unused(now_ns);
        let crowded = is_crowded(self.core.table.len() as u32, self.core.table.max_flows() as u32);
        let depends = self.core.table.get(id).is_some_and(Entry::depends);
        let Some(Entry { state: flow, held, snooped, .. }) = self.core.table.get_mut(id) else {
            return;
        };
        let mut params = *self.core.treatments.params_of(flow);
        if held.hold.retains() {
            // The guest is not to retransmit what is repaired here.
            params.0.emit = 0;
        }
        let action = flow.deadline(&params, now_ns / NS_PER_US, crowded);
        if action.forget != 0 && !flow.split_owes(&held.hold) && !snooped.snoop.has_stored() {
            let silent_ms = ((now_ns / NS_PER_MS) as u32).wrapping_sub(flow.last_seen_ms);
            // A guest that is paused may still discard what lies in its ring.
            let is_unfinished = depends || snooped.snoop.is_promise_due();
            let is_closed = u32::from(flow.stage) == sys::STAGE_CLOSED;
            if is_unfinished && is_closed && silent_ms < UNFINISHED_MS {
                self.core.table.set_look(id, timer::after_ms(now_ns, UNFINISHED_LOOK_MS));
                return;
            }
            self.give_up(id, out);
            return;
        }
        let mut next_ms =
            timer::next_look_ms(self.core.treatments.params_of(flow), action.deadline_ms);
        if let Some(idle_ms) = self.core.forget_idle_grant(id) {
            next_ms = next_ms.min(idle_ms);
        }
        if self.core.rest_in_pool(id) {
            next_ms = next_ms.min(timer::LOOK_MIN_MS);
        }
        if action.dupacks > 0 || action.update != 0 {
            // They repeat what the guest has not been shown yet.
            self.thinning.hand_over(&mut self.core, id, &mut out.to_guest);
        }
        let Some(Entry { key, state: flow, .. }) = self.core.table.get(id) else { return };
        let unsent = self.emitter.carry_out(now_ns, key, flow, &action, &mut out.to_guest);
        self.core.counters.count_unsent(unsent);
        self.core.table.set_look(id, timer::after_ms(now_ns, next_ms));
    }
}

impl Counters {
    fn count_unsent(&mut self, unsent: Unsent) {
        if unsent.0 {
            self.count(sys::COUNT_EVENT_LOST);
        }
    }
}

/// Gives a segment to the guest another sequence number.
fn move_to_seq(frame: &mut Frame, seq: u32) {
    if let Ok(mut parsed) = parse(frame, Direction::ToGuest) {
        set_seq(frame, &mut parsed, seq);
    }
}

/// Is the rewritten frame the same segment of the same flow, with the action's values?
fn has_action_values(
    frame: &Frame,
    direction: Direction,
    before: &Parsed,
    action: &Action,
) -> bool {
    let Ok(now) = parse(frame, direction) else {
        // Without payload, a segment with BIG TCP's length 0 is malformed once gso_size is cleared.
        return before.ip.length == 0;
    };
    let (then, segment) = (&before.segment, &now.segment);
    now.key == before.key
        && (segment.seq, segment.ack, segment.payload_bytes)
            == (then.seq, then.ack, then.payload_bytes)
        && (segment.flags, segment.window, segment.ip_ecn)
            == (action.flags, action.window, action.ip_ecn)
        && (before.places.mss_at.is_none() || segment.mss == action.mss)
        && (before.places.wscale_at.is_none() || segment.wscale == action.wscale)
}

#[cfg(test)]
mod tests;
