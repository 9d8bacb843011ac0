//! A port: parse, look up, engine, rewrite.

mod corrupt;
mod ended;
mod holding;
mod judging;
mod moving;
mod pacing;
mod path_mtu;
mod recording;
mod repairing;
mod room;
mod snooping;
mod splitting;
mod thinning;

use holding::ends_held;
pub use moving::Arrived;
use pacing::Pacing;
use snooping::Snooping;
use splitting::Promises;
pub use thinning::ReceiveRing;
use thinning::Thinning;
use vcc_engine::{Action, Buffer, Delays, FlowState, Mode, Params, Segment, is_crowded, sys};

use crate::counters::{Counters, Reason};
use crate::emit::{Emitter, Unsent};
use crate::fack;
use crate::frame::{Direction, Frame, Out, Verdict};
use crate::hold::BufferSpec;
use crate::parse::{Parsed, parse, parse_first_fragment};
use crate::receipt::Receipt;
use crate::recording::Recording;
use crate::rewrite::rewrite;
use crate::rules::Treatments;
use crate::table::{Entry, FlowId, Room, Table};
use crate::timer::{self, LOOK_MIN_MS};
use crate::timers::Timers;
use crate::trace::{Inferred, TracedAck};
use vcc_engine::FlowKey;

const NS_PER_US: u64 = 1000;
const NS_PER_S: u64 = 1_000_000_000;

/// As the engine has the time since when there is a port.
fn seconds(ns: u64) -> u32 {
    (ns / NS_PER_S) as u32
}

/// The host side of one guest's card.
///
/// Time is in ns of any monotonic clock; it may stand still.
#[derive(Clone)]
pub struct Port {
    treatments: Treatments,
    pacing: Pacing,
    table: Table,
    emitter: Emitter,
    counters: Counters,
    delays: Delays,
    buffer: Buffer,
    /// Since when the buffer has been full without a segment leaving.
    full_since_ns: Option<u64>,
    repairs: Timers,
    promises: Promises,
    snooping: Snooping,
    thinning: Thinning,
    /// None unless tracing is on.
    traced: Option<Vec<TracedAck>>,
    pub(crate) recording: Option<Recording>,
    /// Since when it takes all of its guest's new connections; None until the first time is known.
    attached_ns: Option<u64>,
    now_ns: u64,
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
            treatments: Treatments::new(params),
            pacing: Pacing::default(),
            table: Table::new(max_flows),
            emitter: Emitter::default(),
            counters: Counters::default(),
            delays: Delays::default(),
            buffer: buffer.empty(),
            full_since_ns: None,
            repairs: Timers::default(),
            promises: Promises::default(),
            snooping: Snooping::default(),
            thinning: Thinning::default(),
            traced: None,
            recording: None,
            attached_ns: None,
            now_ns: 0,
        };
        port.note_treatments();
        port
    }

    /// Starts recording the engine's state at each ACK.
    pub fn trace(&mut self) {
        self.traced.get_or_insert_default();
    }

    /// All ACKs to the guest since [`Port::trace`], in order.
    pub fn traced(&self) -> &[TracedAck] {
        self.traced.as_deref().unwrap_or_default()
    }

    /// A frame from the guest to the fabric. `out` receives frames that follow it: a FACK, what was
    /// held, a window update.
    pub fn from_guest(&mut self, now_ns: u64, frame: &mut Frame, out: &mut Out) -> Verdict {
        self.note_time(now_ns);
        // To move what was parsed costs as much as to parse it.
        let mut read = parse(frame, Direction::FromGuest);
        let parsed = match &mut read {
            Ok(parsed) => parsed,
            Err(reason) => {
                let (untouched, reason) = (self.unread(frame, *reason), *reason);
                if untouched == Verdict::Pass && reason == sys::COUNT_FRAGMENT {
                    self.fragment_from_guest(frame);
                }
                return untouched;
            }
        };
        let id = match self.find_or_create(Direction::FromGuest, frame, parsed, out) {
            Ok(id) => id,
            Err(untouched) => return untouched,
        };
        // It runs, so it reads.
        self.hand_over_ack(id, out);
        if self.snoop_from_guest(id, frame, parsed, out) {
            return Verdict::Held;
        }
        if self.is_holding(id) {
            let said = parsed.segment;
            let verdict = self.hold_from_guest(id, frame, parsed, out);
            self.promise(id, &said);
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
        self.note_time(now_ns);
        let mut read = parse(frame, Direction::ToGuest);
        let parsed = match &mut read {
            Ok(parsed) => parsed,
            Err(reason) => {
                let untouched = self.unread(frame, *reason);
                self.hear_too_big(frame, out);
                return (untouched, Receipt::unread());
            }
        };
        let id = match self.find_or_create(Direction::ToGuest, frame, parsed, out) {
            Ok(id) => id,
            Err(untouched) => return (untouched, Receipt::unread()),
        };
        if self.is_corrupt(id, frame, parsed) {
            return (Verdict::Pass, Receipt::unread());
        }
        let before = self.judge_repair(id);
        let last = self.last_shown(id);
        let mut action = Action::default();
        let asked = self.ask_engine(Direction::ToGuest, id, &parsed.segment, &mut action, out);
        let Some(Judged { hears, .. }) = asked else {
            return (Verdict::Pass, Receipt::unread());
        };
        let passes = u32::from(action.verdict) == sys::VCC_PASS;
        self.note_stamp(id, parsed, hears);
        self.repair_to_guest(id, frame, parsed, before, passes, hears);
        let mut verdict = self.carry_out(Direction::ToGuest, frame, parsed, &action);
        if verdict == Verdict::Pass && hears {
            verdict = self.thin(id, frame, parsed, &action, last, out);
        }
        if u32::from(parsed.segment.flags) & sys::TCP_SYN != 0 {
            self.snoop_peer_syn(id, parsed, action.strip != 0);
            self.open(id, out);
        }
        if self.has_held(id) {
            self.resend(id, out);
            self.release(id, out);
        }
        self.record(id);
        let is_read_again = verdict == Verdict::Pass && self.snooping.is_on;
        let parsed = if is_read_again { read.ok() } else { None };
        (verdict, Receipt::of_rewritten(parsed, &action))
    }

    /// The next deadline for [`Port::advance`]; None without flows. Frames and `advance` may change
    /// it.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        let looks = [
            self.table.next_look_ns(),
            self.emitter.next_look_ns(),
            self.next_read_ns(),
            self.next_repair_ns(),
            self.snooping.next_ns(),
            self.next_ack_ns(),
            self.pacing.next_ns(),
            self.thinning.next_ns(),
        ];
        looks.into_iter().flatten().min()
    }

    /// Processes deadlines: flows time out and expire. With emission enabled, `to_guest` receives
    /// duplicate ACKs and window updates for the guest; they must not pass through
    /// [`Port::to_guest`] again. A late call processes everything that is due at once; an early one
    /// does nothing.
    pub fn advance(&mut self, now_ns: u64, out: &mut Out) {
        self.note_time(now_ns);
        // Before the engine infers the timeouts of flows that are not repaired here.
        self.advance_repairs(out);
        self.advance_pacing(out);
        self.advance_snooping(out);
        self.send_acks(out);
        self.advance_thinning(out);
        let to_guest = &mut out.to_guest;
        let table = &self.table;
        let flow_of = |key: &FlowKey| table.of_key(key).map(|entry| &entry.state);
        while let Some(unsent) = self.emitter.look_again(now_ns, flow_of, to_guest) {
            self.counters.count_unsent(unsent);
        }
        while let Some(id) = self.table.due(now_ns) {
            self.on_deadline(now_ns, id, out);
        }
        debug_assert!(self.next_deadline_ns().is_none_or(|next_ns| next_ns > now_ns));
    }

    /// The flows, in order of their keys.
    pub fn flows(&self) -> impl Iterator<Item = (&FlowKey, &FlowState)> {
        self.table.iter().map(|entry| (&entry.key, &entry.state))
    }

    /// Connections whose flows were forgotten, and which a segment may revive.
    pub fn minisocks(&self) -> usize {
        self.table.minisocks()
    }

    /// The size of the flow table.
    pub fn max_flows(&self) -> usize {
        self.table.max_flows()
    }

    /// A flow; None if the port does not know it.
    pub fn flow(&self, key: &FlowKey) -> Option<&FlowState> {
        self.table.of_key(key).map(|entry| &entry.state)
    }

    /// Segments that were not translated, by reason.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What the round trips of all its connections waited for.
    pub fn delays(&self) -> &Delays {
        &self.delays
    }

    /// The parameters of the flows' treatment, while there are no rules.
    pub fn params(&self) -> &Params {
        self.treatments.single()
    }

    /// Changes the parameters, from the flows' next segments on.
    pub fn set_params(&mut self, params: Params) {
        self.treatments.set_single(params);
        self.note_treatments();
    }

    fn note_treatments(&mut self) {
        self.note_snoop();
        self.note_hold();
    }

    fn now_us(&self) -> u64 {
        self.now_ns / NS_PER_US
    }

    fn note_time(&mut self, now_ns: u64) {
        debug_assert!(now_ns >= self.now_ns, "time runs back");
        self.now_ns = now_ns;
        self.attached_ns.get_or_insert(now_ns);
    }

    /// Finds or creates the flow of a frame that has come.
    ///
    /// # Errors
    /// The frame is not translated, which is counted: the verdict for it.
    fn find_or_create(
        &mut self,
        direction: Direction,
        frame: &Frame,
        parsed: &mut Parsed,
        out: &mut Out,
    ) -> Result<FlowId, Verdict> {
        parsed.segment.now_us = self.now_us();
        let is_syn = u32::from(parsed.segment.flags) & sys::TCP_SYN != 0;
        if self.emits() && direction == Direction::FromGuest && is_syn {
            self.emitter.neighbours.learn(&parsed.key, &frame.bytes);
        }
        let known = self.table.find(&parsed.key);
        let known = known.filter(|id| !self.ends_before_syn(*id, direction, &parsed.segment));
        let is_ruled = self.treatments.epoch() != 0;
        let known = known.filter(|id| !is_ruled || self.settle_rule(*id));
        self.refuse_ended(direction, frame, parsed, out)?;
        match known {
            Some(id) => Ok(id),
            None => self.create(direction, parsed),
        }
    }

    /// Does the port send segments of its own to the guest? Under rules, others may follow.
    fn emits(&self) -> bool {
        self.treatments.epoch() != 0
            || self.params().0.emit != 0
            || u32::from(self.params().0.act) != sys::ACT_WINDOW
    }

    /// Runs the engine on a frame of the guest and sends it on its way. `out` receives the FACK that
    /// follows it.
    fn leave(&mut self, id: FlowId, frame: &mut Frame, parsed: &Parsed, out: &mut Out) -> Verdict {
        let raised = self.raised(id, frame, parsed);
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

    /// The verdict for a frame that could not be parsed.
    fn unread(&mut self, frame: &Frame, reason: Reason) -> Verdict {
        let unjudged = reason != sys::COUNT_NOT_TCP
            && self.treatments.polices()
            && vcc_engine::holds_tcp(&frame.bytes);
        self.counters.count(if unjudged { sys::COUNT_UNJUDGED } else { reason });
        if unjudged { Verdict::Drop } else { Verdict::Pass }
    }

    /// A fragment of the guest passes: the flow whose segment begins with it learns of it.
    fn fragment_from_guest(&mut self, frame: &Frame) {
        let Some(mut parsed) = parse_first_fragment(frame) else { return };
        parsed.segment.now_us = self.now_us();
        let Some(id) = self.table.find(&parsed.key) else { return };
        if self.treatments.epoch() != 0 && !self.settle_rule(id) {
            return;
        }
        let Some(Entry { state: flow, .. }) = self.table.get_mut(id) else { return };
        if flow.fragment_from_guest(self.treatments.of(flow), &parsed.segment) {
            self.counters.count(sys::COUNT_IN_FRAGMENTS);
        }
    }

    /// Creates a flow for a SYN if the port has room and takes new ones, and the connection's rule
    /// does not leave it alone.
    ///
    /// # Errors
    /// There is no flow: the verdict for the segment.
    fn create(&mut self, direction: Direction, parsed: &Parsed) -> Result<FlowId, Verdict> {
        if !judging::opens(direction, &parsed.segment) {
            if let Some(id) = self.revive(parsed) {
                return Ok(id);
            }
            return Err(self.unknown(direction, parsed));
        }
        if self.params().0.mode == Mode::Drain.number() {
            return Err(Verdict::Pass);
        }
        let guest_opened = direction == Direction::FromGuest;
        let (rule, params) = self.treatments.judge(&parsed.key, guest_opened);
        if self.treatments.epoch() != 0 && params.0.mode == Mode::Ignore.number() {
            self.counters.count(sys::COUNT_IGNORED);
            return Err(Verdict::Pass);
        }
        let drops = u32::from(params.0.on_full) == sys::ON_FULL_DROP || params.rejects_unknown();
        let Some(id) = self.insert(parsed.key) else {
            let (counter, verdict) = match drops {
                true => (sys::COUNT_REFUSED, Verdict::Drop),
                false => (sys::COUNT_TABLE_FULL, Verdict::Pass),
            };
            self.counters.count(counter);
            return Err(verdict);
        };
        if let Some(entry) = self.table.get_mut(id) {
            self.treatments.come_under(&mut entry.state, rule);
        }
        Ok(id)
    }

    /// Counts a segment whose connection the port does not know. The verdict is that of
    /// `datapath/unknown_segment.h`.
    fn unknown(&mut self, direction: Direction, parsed: &Parsed) -> Verdict {
        let segment = &parsed.segment;
        let now_s = seconds(self.now_ns);
        let attached_s = self.attached_ns.map_or(now_s, seconds);
        let drops = |guest_opened| {
            let (_, params) = self.treatments.judge(&parsed.key, guest_opened);
            params.drops_unknown(segment, attached_s, now_s)
        };
        let drains = self.params().0.mode == Mode::Drain.number();
        let is_dropped =
            direction == Direction::FromGuest && !drains && [true, false].into_iter().all(drops);
        let is_signed = u32::from(segment.options) & sys::OPT_SIGNED != 0;
        self.counters.count(match (is_dropped, is_signed) {
            (true, _) => sys::COUNT_UNKNOWN_DROPPED,
            (false, true) => sys::COUNT_SIGNED,
            (false, false) => sys::COUNT_UNKNOWN,
        });
        if is_dropped { Verdict::Drop } else { Verdict::Pass }
    }

    /// Inserts a new flow into the table.
    fn take_place(&mut self, key: FlowKey) -> Room {
        let treatments = &self.treatments;
        let params_of = |flow: &FlowState| *treatments.of(flow);
        self.table.insert(key, timer::after_ms(self.now_ns, LOOK_MIN_MS), params_of)
    }

    /// A new flow; None if there is no room for it.
    fn insert(&mut self, key: FlowKey) -> Option<FlowId> {
        match self.take_place(key) {
            Room::Free => {}
            Room::Made(gave_way) => {
                (0..gave_way).for_each(|_| self.counters.count(sys::COUNT_GAVE_WAY));
            }
            Room::None => return None,
        }
        self.table.find(&key)
    }

    /// The flow of a connection that was forgotten and continues. None if it has no minisock, or if
    /// there is no room.
    fn revive(&mut self, parsed: &Parsed) -> Option<FlowId> {
        if u32::from(parsed.segment.flags) & sys::TCP_RST != 0 {
            return None;
        }
        let minisock = self.table.take_minisock(&parsed.key)?;
        let (rule, params) = self.treatments.judge(&parsed.key, minisock.guest_opened());
        let params = *params;
        let now_us = self.now_us();
        let id = self.insert(parsed.key)?;
        let entry = self.table.get_mut(id)?;
        if !entry.state.revive(&minisock, &params, now_us) {
            self.table.remove(id);
            return None;
        }
        self.treatments.come_under(&mut entry.state, rule);
        if !entry.state.is_half_open() {
            self.table.end_handshake(id);
        }
        self.counters.count(sys::COUNT_REVIVED);
        Some(id)
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
        let now_ns = self.now_ns;
        let is_syn = u32::from(segment.flags) & sys::TCP_SYN != 0;
        let broken = if is_syn { self.breaking(id) } else { None };
        let entry = self.table.get_mut(id)?;
        let (look_ns, in_handshake) = (entry.look_ns(), entry.in_handshake());
        let Entry { key, state: flow, held, snooped, .. } = entry;
        let judged = match direction {
            Direction::FromGuest => {
                flow.snoop_leave(&snooped.snoop, segment, |flow| {
                    let params = self.treatments.of(flow);
                    flow.from_guest_into(params, segment, action);
                    if params.0.guest_rate_cap_bytes_per_ms != 0 {
                        self.pacing.bucket.cap(flow, params, segment, action);
                    }
                });
                Judged { hears: false, is_reset: flow.is_reset(segment, true) }
            }
            Direction::ToGuest => {
                let is_ack = u32::from(segment.flags) & sys::TCP_ACK != 0;
                let before = self.traced.as_ref().filter(|_| is_ack).map(|_| Inferred::of(flow));
                let hold = &mut held.hold;
                let judged = flow.snoop_judge(&snooped.snoop, |flow| {
                    let params = self.treatments.of(flow);
                    let hears = flow.hold_to_guest(hold, &self.buffer, params, segment, action);
                    Judged { hears, is_reset: flow.is_reset(segment, false) }
                });
                if let (Some(traced), Some(before)) = (&mut self.traced, before) {
                    let after = Inferred::of(flow);
                    traced.push(TracedAck { at_ns: now_ns, key: *key, before, after });
                }
                let passes = u32::from(action.verdict) == sys::VCC_PASS;
                let recording = self.recording.as_mut().filter(|_| is_ack && passes);
                if recording.is_some_and(|it| !it.note(now_ns / NS_PER_US, key, flow)) {
                    self.counters.count(sys::COUNT_TRACE_LOST);
                }
                judged
            }
        };
        self.delays.count(action);
        if action.forget != 0 {
            self.forget(id);
            if let Some(broken) = broken {
                broken.reset(out);
            }
            return Some(judged);
        }
        let is_open = u32::from(flow.stage) == sys::STAGE_ESTABLISHED;
        let sooner_ns = timer::sooner_ns(flow, self.treatments.of(flow), now_ns, look_ns);
        if ends_held(flow, held, segment, judged.is_reset) {
            self.end_held(id, judged.is_reset);
            if let Some(broken) = broken {
                broken.reset(out);
            }
        }
        if in_handshake && is_open {
            self.table.end_handshake(id);
        }
        if let Some(sooner_ns) = sooner_ns {
            self.table.set_look(id, sooner_ns);
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
            self.counters.count(sys::COUNT_FORGED);
        }
        if action.one_direction != 0 {
            self.counters.count(sys::COUNT_ONE_DIRECTION);
        }
        if parsed.places.malformed {
            self.counters.count(sys::COUNT_BAD_OPTIONS);
        }
        match u32::from(action.verdict) {
            sys::VCC_PASS => {
                rewrite(frame, direction, parsed, action);
                debug_assert!(has_action_values(frame, direction, parsed, action));
                Verdict::Pass
            }
            sys::VCC_DROP => {
                let policed = action.police != 0;
                self.counters.count(if policed { sys::COUNT_POLICED } else { sys::COUNT_DROPPED });
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
            self.counters.count(sys::COUNT_REPORT_LOST);
            return None;
        }
        let flow = &self.table.get(id)?.state;
        debug_assert!(action.feedback == flow.counted, "a report says what was counted");
        let ip_ecn = fack::ip_ecn(flow, self.treatments.of(flow), &parsed.segment);
        Some(fack::fack(frame, parsed, &action.feedback, ip_ecn))
    }

    /// The flow's deadline expired.
    fn on_deadline(&mut self, now_ns: u64, id: FlowId, out: &mut Out) {
        let crowded = is_crowded(self.table.len() as u32, self.table.max_flows() as u32);
        let Some(Entry { state: flow, held, .. }) = self.table.get_mut(id) else { return };
        let mut params = *self.treatments.of(flow);
        if held.hold.retains() {
            // The guest is not to retransmit what is repaired here.
            params.0.emit = 0;
        }
        let action = flow.deadline(&params, now_ns / NS_PER_US, crowded);
        if action.forget != 0 && !flow.split_owes(&held.hold) {
            self.table.leave_minisock(id, &params);
            self.forget(id);
            return;
        }
        let next_ms = timer::next_look_ms(self.treatments.of(flow), action.deadline_ms);
        if action.dupacks > 0 || action.update != 0 {
            // They repeat what the guest has not been shown yet.
            self.hand_over_ack(id, out);
        }
        let Some(Entry { key, state: flow, .. }) = self.table.get(id) else { return };
        let unsent = self.emitter.carry_out(now_ns, key, flow, &action, &mut out.to_guest);
        self.counters.count_unsent(unsent);
        self.table.set_look(id, timer::after_ms(now_ns, next_ms));
    }
}

impl Counters {
    fn count_unsent(&mut self, unsent: Unsent) {
        if unsent.0 {
            self.count(sys::COUNT_EVENT_LOST);
        }
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
