//! What the parts of a port share: its connections with their treatments, its buffer, what it counts,
//! and its clock. A part sees this and its own state.

use vcc_engine::{Action, Buffer, Delays, GuestRate, Mode, Params, Segment, sys};

use super::{Judged, NS_PER_US, seconds};
use crate::counters::{Counters, Reason};
use crate::flow_view::Seen;
use crate::frame::{Direction, Frame, Verdict};
use crate::parse::{Parsed, parse_first_fragment};
use crate::pools::{Member, Pools};
use crate::rules::Treatments;
use crate::spare::Spare;
use crate::table::{Entry, FlowId, Room, Table};
use crate::timer::{self, LOOK_MIN_MS, NS_PER_MS};
use vcc_engine::FlowKey;

#[derive(Clone)]
pub(super) struct Core {
    pub treatments: Treatments,
    pub pools: Pools,
    pub table: Table,
    pub counters: Counters,
    pub delays: Delays,
    /// For what is held and retained.
    pub buffer: Buffer,
    /// For copies of frames.
    pub spare: Spare,
    /// Whether each flow's part of the buffer is recorded over time.
    pub watches_buffer: bool,
    /// Of all connections of the guest.
    pub rate: GuestRate,
    /// Since when it takes all of its guest's new connections; None until the first time is known.
    attached_ns: Option<u64>,
    pub now_ns: u64,
}

impl Core {
    pub(super) fn new(params: Params, max_flows: usize, buffer: Buffer) -> Self {
        Core {
            treatments: Treatments::new(params),
            pools: Pools::default(),
            table: Table::new(max_flows),
            counters: Counters::default(),
            delays: Delays::default(),
            buffer,
            spare: Spare::default(),
            watches_buffer: false,
            rate: GuestRate::default(),
            attached_ns: None,
            now_ns: 0,
        }
    }

    pub(super) fn note_time(&mut self, now_ns: u64) {
        debug_assert!(now_ns >= self.now_ns, "time runs back");
        self.now_ns = now_ns;
        self.attached_ns.get_or_insert(now_ns);
    }

    pub(super) fn now_us(&self) -> u64 {
        self.now_ns / NS_PER_US
    }

    /// Of the clock by which idle time is measured.
    fn now_ms(&self) -> u32 {
        (self.now_ns / NS_PER_MS) as u32
    }

    /// A flow as other processes see it.
    pub(super) fn seen(&self, entry: &Entry) -> Seen {
        Seen::from_entry(entry, &self.buffer, self.treatments.params_of(&entry.state))
    }

    /// The bytes of the buffer that the flow's next segment may take.
    pub(super) fn room_bytes(&self, id: FlowId, segment: &Segment) -> u32 {
        let Some(Entry { state: flow, held, .. }) = self.table.get(id) else { return 0 };
        let end = segment.seq.wrapping_add(segment.payload_bytes);
        flow.hold_room_bytes(&held.hold, &self.buffer, self.treatments.params_of(flow), end)
    }

    /// Settles what the flow is granted of the buffer, after a segment of either end.
    #[inline]
    pub(super) fn settle_grant(&mut self, id: FlowId) {
        let Some(Entry { held, .. }) = self.table.get(id) else { return };
        // A handshake that is answered otherwise than before begins anew, with what it was granted.
        if held.hold.0.begun != 0 || held.hold.0.granted_bytes != 0 {
            self.settle_grant_of_holding(id);
        }
    }

    fn settle_grant_of_holding(&mut self, id: FlowId) {
        let now_ms = self.now_ms();
        let Some(Entry { state: flow, held, .. }) = self.table.get_mut(id) else { return };
        let params = self.treatments.params_of(flow);
        flow.hold_settle(&mut held.hold, &mut self.buffer, params, now_ms);
        if self.watches_buffer {
            let exceeds_share = flow.hold_exceeds_share(&held.hold, &self.buffer, params);
            held.occupancy.note(self.now_ns, held.hold.0.held_bytes, exceeds_share);
        }
        let look_ns = timer::after_ms(self.now_ns, sys::GRANT_IDLE_MS);
        if held.hold.0.granted_bytes > 0
            && self.table.get(id).is_some_and(|it| it.look_ns() > look_ns)
        {
            self.table.set_look(id, look_ns);
        }
    }

    /// A flow whose guest sends nothing new gives back what it was granted. Returns the ms after which to look at
    /// it again; None if it has been granted nothing.
    pub(super) fn forget_idle_grant(&mut self, id: FlowId) -> Option<u32> {
        let now_ms = self.now_ms();
        let Entry { state: flow, held, .. } = self.table.get_mut(id)?;
        if held.hold.0.granted_bytes == 0 {
            return None;
        }
        let idle_ms = flow.hold_idle_ms(&held.hold, now_ms);
        if idle_ms < sys::GRANT_IDLE_MS {
            return Some(sys::GRANT_IDLE_MS - idle_ms);
        }
        held.hold.gives_back(&mut self.buffer);
        None
    }

    /// The engine judges a segment of the guest.
    #[inline]
    pub(super) fn judge_from_guest(
        &mut self,
        id: FlowId,
        segment: &Segment,
        action: &mut Action,
    ) -> Option<Judged> {
        let Entry { state: flow, held, snooped, member, .. } = self.table.get_mut(id)?;
        let params = self.treatments.params_of(flow);
        let limited = self.pools.enter((flow, &held.hold), member, params, false, segment);
        let segment = limited.as_ref().unwrap_or(segment);
        flow.snoop_leave(&snooped.snoop, segment, |flow| {
            flow.from_guest_into(params, segment, action);
            if params.0.guest_rate_cap_bytes_per_ms != 0 {
                self.rate.cap(flow, params, segment, action);
            }
        });
        let is_reset = flow.is_reset(segment, true);
        if let Some(limited) = &limited {
            self.pools.exit((flow, &held.hold), member, params, limited);
            debug_assert!(self.pools_add_up());
        }
        Some(Judged { hears: false, is_reset })
    }

    /// The engine judges a segment to the guest.
    #[inline]
    pub(super) fn judge_to_guest(
        &mut self,
        id: FlowId,
        segment: &Segment,
        action: &mut Action,
    ) -> Option<Judged> {
        let Entry { state: flow, held, snooped, member, .. } = self.table.get_mut(id)?;
        let params = self.treatments.params_of(flow);
        let limited = self.pools.enter((flow, &held.hold), member, params, true, segment);
        let segment = limited.as_ref().unwrap_or(segment);
        let shell = (&snooped.snoop, &mut held.hold, &self.buffer);
        let (hears, is_reset) = flow.snoop_to_guest(shell, params, segment, action);
        if let Some(limited) = &limited {
            self.pools.exit((flow, &held.hold), member, params, limited);
            debug_assert!(self.pools_add_up());
        }
        Some(Judged { hears, is_reset })
    }

    /// The flow's deadline expired: it may be idle in its pool. Is it still a member, which has another deadline?
    pub(super) fn rest_in_pool(&mut self, id: FlowId) -> bool {
        let now_ms = self.now_ms();
        let Some(Entry { state: flow, held, member, .. }) = self.table.get_mut(id) else {
            return false;
        };
        let params = self.treatments.params_of(flow);
        if !Member::is_any(flow) {
            return false;
        }
        let rests = self.pools.rest((flow, &held.hold), member, params, now_ms);
        debug_assert!(self.pools_add_up());
        rests
    }

    /// Are the pools' accounts the sums over their members? Of many flows, that takes long.
    fn pools_add_up(&self) -> bool {
        const MOST_FLOWS: usize = 64;
        self.table.len() > MOST_FLOWS
            || self.pools.add_up(self.table.iter().map(|entry| (&entry.state, &entry.member)))
    }

    /// The verdict for a frame that could not be parsed.
    pub(super) fn unread(&mut self, frame: &Frame, reason: Reason) -> Verdict {
        let unjudged = reason != sys::COUNT_NOT_TCP
            && self.treatments.polices()
            && vcc_engine::holds_tcp(&frame.bytes);
        self.counters.count(if unjudged { sys::COUNT_UNJUDGED } else { reason });
        if unjudged { Verdict::Drop } else { Verdict::Pass }
    }

    /// The flow whose segment begins with a fragment of the guest, and the segment.
    pub(super) fn of_first_fragment(&self, frame: &Frame) -> Option<(FlowId, Segment)> {
        let mut parsed = parse_first_fragment(frame, Direction::FromGuest)?;
        parsed.segment.now_us = self.now_us();
        Some((self.table.find(&parsed.key)?, parsed.segment))
    }

    /// A fragment of the guest passes: the flow whose segment begins with it learns of it.
    pub(super) fn fragment_from_guest(&mut self, id: FlowId, segment: &Segment) {
        let Some(Entry { state: flow, .. }) = self.table.get_mut(id) else { return };
        if flow.fragment_from_guest(self.treatments.params_of(flow), segment) {
            self.counters.count(sys::COUNT_IN_FRAGMENTS);
        }
    }

    /// Creates a flow for a SYN if the port has room and takes new ones, and the connection's rule
    /// does not leave it alone.
    ///
    /// # Errors
    /// There is no flow: the verdict for the segment.
    pub(super) fn create(
        &mut self,
        direction: Direction,
        parsed: &Parsed,
    ) -> Result<FlowId, Verdict> {
        let is_syn = u32::from(parsed.segment.flags) & sys::TCP_SYN != 0;
        if direction == Direction::FromGuest && is_syn {
            self.table.supersede_minisock(&parsed.key, &parsed.segment);
        }
        if !opens(direction, &parsed.segment) {
            if let Some(id) = self.revive(parsed) {
                return Ok(id);
            }
            return Err(self.unknown(direction, parsed));
        }
        if self.treatments.single().0.mode == Mode::Drain.number() {
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
        let drains = self.treatments.single().0.mode == Mode::Drain.number();
        let may_drop = direction == Direction::FromGuest && !drains && segment.payload_bytes > 0;
        let is_dropped = may_drop && {
            let by = [true, false].map(|guest_opened| {
                let (_, params) = self.treatments.judge(&parsed.key, guest_opened);
                let rate_bytes_per_ms = params.unknown_rate_bytes_per_ms();
                (params.drops_unknown(segment, attached_s, now_s), rate_bytes_per_ms)
            });
            let [(drops, rate), (also_drops, other_rate)] = by;
            // What both do is done.
            let rate = rate.zip(other_rate).map(|(one, other)| one.max(other));
            let exceeds =
                |bytes_per_ms| !self.rate.take(bytes_per_ms, segment.payload_bytes, self.now_ns);
            drops && also_drops || rate.is_some_and(exceeds)
        };
        let is_signed = u32::from(segment.options) & sys::OPT_SIGNED != 0;
        self.counters.count(match (is_dropped, is_signed) {
            (true, _) => sys::COUNT_UNKNOWN_DROPPED,
            (false, true) => sys::COUNT_SIGNED,
            (false, false) => sys::COUNT_UNKNOWN,
        });
        if is_dropped { Verdict::Drop } else { Verdict::Pass }
    }

    /// Inserts a new flow into the table.
    pub(super) fn take_place(&mut self, key: FlowKey) -> Room {
        let (treatments, pools) = (&self.treatments, &mut self.pools);
        let retire = |Entry { state: flow, member, .. }: &mut Entry| {
            pools.leave(flow, member);
            *treatments.params_of(flow)
        };
        self.table.insert(key, timer::after_ms(self.now_ns, LOOK_MIN_MS), retire)
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
}

/// Is it a SYN that begins a connection? A signed one of the peer begins none (`engine/signed_connection.h`).
pub(super) fn opens(direction: Direction, segment: &Segment) -> bool {
    let is_signed = u32::from(segment.options) & sys::OPT_SIGNED != 0;
    let flags = u32::from(segment.flags);
    flags & (sys::TCP_SYN | sys::TCP_ACK) == sys::TCP_SYN
        && !(is_signed && direction == Direction::ToGuest)
}
