//! The connections of all ports, from one read to the next.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use vcc_engine::{FlowState, sys};
use vcc_port::FlowId;
use vcc_view::FlowView;

use super::record::{Counted, End, Record};

/// A connection: its ends, and the guest's initial sequence number, which tells it from others between the
/// same ends. Its port is not part of it: a device may be renamed.
type Key = (FlowId, u32);

/// A connection that lives, or of which the record has been made.
struct Connection {
    port: Arc<str>,
    snd_una: u32,
    acked_bytes: u64,
    /// Of a connection that began before it was seen, what was counted by then.
    before: Counted,
    first_seen: Duration,
    last_read: Duration,
    is_whole: bool,
    /// By the names of limits, in seconds.
    limited_s: BTreeMap<&'static str, f64>,
    /// As it was last; None once the record is made.
    last: Option<Box<FlowView>>,
    round: u64,
}

pub struct Watched {
    connections: HashMap<Key, Connection>,
    round: u64,
    /// The share of connections that are recorded, of 2^32.
    threshold: u64,
    earlier: Option<Earlier>,
    /// The ports that could not be read the last time.
    unread: HashSet<String>,
    hasher: RandomState,
}

/// The connections that an earlier daemon has recorded lately: their ends, and when they ended, in seconds
/// since 1970.
pub type Earlier = HashMap<(String, String), f64>;

/// All connections, at one time of CLOCK_MONOTONIC.
pub struct Read<'a> {
    pub flows: &'a [FlowView],
    /// The ports whose connections could not be read.
    pub unread: HashSet<String>,
    pub now: Duration,
}

impl Watched {
    /// `share`: of the connections, above 0 and at most 1. If it is not known what an earlier daemon has
    /// recorded, nothing that has ended before the first read is.
    pub fn new(share: f64, earlier: Option<Earlier>) -> Self {
        let threshold = ((share * (1_u64 << 32) as f64) as u64).max(1);
        let (connections, round, unread, hasher) =
            (HashMap::new(), 0, HashSet::new(), RandomState::new());
        Self { connections, round, threshold, earlier, unread, hasher }
    }

    /// Makes records of the connections that have ended.
    pub fn read(&mut self, read: Read, write: &mut dyn FnMut(Record)) {
        self.round += 1;
        for flow in read.flows {
            self.note(flow, read.now, write);
        }
        let round = self.round;
        self.connections.retain(|_, connection| {
            // Those of a port that cannot be read may live.
            if connection.round != round && !read.unread.contains(&*connection.port) {
                connection.end(End::Forgotten, read.now, write);
                return false;
            }
            true
        });
        self.unread = read.unread;
    }

    fn note(&mut self, flow: &FlowView, now: Duration, write: &mut dyn FnMut(Record)) {
        let state = &flow.state;
        let is_closed = u32::from(state.stage) == sys::STAGE_CLOSED;
        let key = (*flow.id(), state.iss);
        if let Some(known) = self.connections.get_mut(&key) {
            known.round = self.round;
            known.grow(flow, now);
            if is_closed {
                known.end(End::Closed, now, write);
            }
            return;
        }
        // A handshake that has not ended may never do so.
        if !is_closed && u32::from(state.stage) != sys::STAGE_ESTABLISHED {
            return;
        }
        let was_unread = self.round == 1 || self.unread.contains(&*flow.port);
        let began_before = was_unread && !is_closed;
        let is_chosen = self.hasher.hash_one(key) & 0xffff_ffff < self.threshold;
        let is_recorded = was_unread && is_closed && self.is_recorded(flow, now);
        let mut connection = Connection {
            port: flow.port.clone(),
            snd_una: state.snd_una,
            acked_bytes: if began_before { 0 } else { acked_since_its_syn(state) },
            before: if began_before { Counted::of_flow(flow) } else { Counted::default() },
            first_seen: now,
            last_read: now,
            is_whole: !began_before,
            limited_s: BTreeMap::new(),
            last: (is_chosen && !is_recorded).then(|| Box::new(flow.clone())),
            round: self.round,
        };
        if is_closed {
            let is_used = connection.acked_bytes > 0 || state.peer_sends != 0;
            connection.end(if is_used { End::Closed } else { End::Unused }, now, write);
        }
        self.connections.insert(key, connection);
    }
}

impl Watched {
    fn is_recorded(&self, flow: &FlowView, now: Duration) -> bool {
        /// Both times are exact to some ms, and a late ACK may have come after the record.
        const LATE_S: f64 = 1.0;
        let Some(earlier) = &self.earlier else { return true };
        let ends = (flow.id().guest.to_string(), flow.id().peer.to_string());
        let ended_s = ended_unix_s(&flow.state, now);
        earlier.get(&ends).is_some_and(|recorded_s| ended_s <= recorded_s + LATE_S)
    }
}

impl Connection {
    fn grow(&mut self, flow: &FlowView, now: Duration) {
        self.port = flow.port.clone();
        let Some(last) = &mut self.last else { return };
        let passed_s = now.saturating_sub(self.last_read).as_secs_f64();
        *self.limited_s.entry(last.limit.name()).or_default() += passed_s;
        let acked_bytes = flow.state.snd_una.wrapping_sub(self.snd_una);
        if acked_bytes <= i32::MAX as u32 {
            self.acked_bytes += u64::from(acked_bytes);
        } else {
            // More than was read in time, or a forged ACK.
            self.is_whole = false;
        }
        (self.snd_una, self.last_read) = (flow.state.snd_una, now);
        **last = flow.clone();
    }

    fn end(&mut self, end: End, now: Duration, write: &mut dyn FnMut(Record)) {
        let Some(last) = self.last.take() else { return };
        let lasted = now.saturating_sub(silent(&last.state, now)).checked_sub(self.first_seen);
        let all_s: f64 = self.limited_s.values().sum();
        let shares = self.limited_s.iter().filter(|_| all_s > 0.0);
        let fin_bytes = u64::from(has_acked_fin(&last.state));
        write(Record {
            ended_unix_s: ended_unix_s(&last.state, now),
            end,
            lasted_s: lasted.map(|lasted| lasted.as_secs_f64()),
            is_whole: self.is_whole,
            acked_bytes: self.acked_bytes.saturating_sub(fin_bytes),
            limited_by: shares.map(|(name, s)| ((*name).to_owned(), s / all_s)).collect(),
            ..Record::of_flow(&last, &self.before)
        });
    }
}

/// New data, without the SYN.
fn acked_since_its_syn(state: &FlowState) -> u64 {
    state.snd_una.wrapping_sub(state.iss).saturating_sub(1).into()
}

/// A FIN takes a sequence number.
fn has_acked_fin(state: &FlowState) -> bool {
    state.has(sys::FLOW_FIN_GUEST) && state.snd_una == state.snd_nxt
}

/// The time since its last segment.
fn silent(state: &FlowState, now: Duration) -> Duration {
    let ms = (now.as_millis() as u32).wrapping_sub(state.last_seen_ms);
    // The clock of the segments may be a little ahead of the read.
    Duration::from_millis(if ms > i32::MAX as u32 { 0 } else { ms.into() })
}

fn ended_unix_s(state: &FlowState, now: Duration) -> f64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since_1970.saturating_sub(silent(state, now)).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use vcc_view::testing::{flow_of, state};

    use super::*;

    const GUEST: &str = "10.0.0.1:40000";
    const PEER: &str = "192.0.2.9:80";
    const ISS: u32 = u32::MAX - 100;

    /// A read of one connection, in which so many bytes are acknowledged, at a time of the segments' clock.
    fn flow(stage: u32, acked_bytes: u32, last_seen_ms: u32) -> FlowView {
        let mut state = state();
        state.0.stage = stage as u8;
        (state.0.iss, state.0.last_seen_ms) = (ISS, last_seen_ms);
        state.0.snd_una = ISS.wrapping_add(1 + acked_bytes);
        flow_of(GUEST, PEER, state)
    }

    fn at(watched: &mut Watched, s: u64, flows: &[FlowView]) -> Vec<Record> {
        let mut records = Vec::new();
        let (unread, now) = (HashSet::new(), Duration::from_secs(s));
        watched.read(Read { flows, unread, now }, &mut |record| records.push(record));
        records
    }

    fn begun() -> Watched {
        let mut watched = Watched::new(1.0, Some(Earlier::new()));
        assert_eq!(at(&mut watched, 100, &[]), []);
        watched
    }

    #[test]
    fn a_record_has_what_was_seen_of_a_whole_connection() {
        let mut watched = begun();
        let handshake = flow(sys::STAGE_SYN_SENT, 0, 100_500);
        assert_eq!(at(&mut watched, 101, &[handshake]), []);
        assert_eq!(at(&mut watched, 102, &[flow(sys::STAGE_ESTABLISHED, 1_000, 102_000)]), []);
        assert_eq!(at(&mut watched, 103, &[flow(sys::STAGE_ESTABLISHED, 5_000, 103_000)]), []);
        let closed = flow(sys::STAGE_CLOSED, 9_000, 103_500);
        let [record] = &at(&mut watched, 104, std::slice::from_ref(&closed))[..] else {
            panic!("no record")
        };
        assert_eq!((record.end, record.is_whole, record.acked_bytes), (End::Closed, true, 9_000));
        assert_eq!(record.lasted_s, Some(1.5));
        assert_eq!(record.limited_by.values().sum::<f64>(), 1.0);
        assert_eq!((&*record.guest, &*record.peer), (GUEST, PEER));
        // It stays in the table for a while.
        assert_eq!(at(&mut watched, 105, &[closed]), []);
        assert_eq!(at(&mut watched, 106, &[]), []);
    }

    #[test]
    fn connections_are_recorded_however_they_end() {
        let mut watched = begun();
        let short = flow(sys::STAGE_CLOSED, 700, 101_000);
        let records = at(&mut watched, 101, std::slice::from_ref(&short));
        let [Record { acked_bytes: 700, is_whole: true, end: End::Closed, .. }] = &records[..]
        else {
            panic!("{records:?}")
        };
        // Another one between the same ends.
        let mut next = flow(sys::STAGE_ESTABLISHED, 0, 102_000);
        (next.state.0.iss, next.state.0.snd_una) = (77, 78 + 300);
        assert_eq!(at(&mut watched, 102, &[next]), []);
        let records = at(&mut watched, 103, &[short]);
        let [of_short, of_next] = &records[..] else { panic!("{records:?}") };
        assert_eq!((of_next.end, of_next.acked_bytes), (End::Forgotten, 300));
        assert_eq!((of_short.end, of_short.acked_bytes), (End::Closed, 700));
        // It goes without having been seen closed.
        let mut watched = begun();
        at(&mut watched, 101, &[flow(sys::STAGE_ESTABLISHED, 10, 101_000)]);
        let records = at(&mut watched, 102, &[]);
        let [Record { end: End::Forgotten, acked_bytes: 10, .. }] = &records[..] else {
            panic!("{records:?}")
        };
    }

    #[test]
    fn what_is_older_than_the_daemon_is_not_whole() {
        let mut watched = Watched::new(1.0, None);
        assert_eq!(at(&mut watched, 100, &[flow(sys::STAGE_CLOSED, 1, 99_000)]), []);
        let recorded = Earlier::from([((GUEST.to_owned(), PEER.to_owned()), f64::MAX)]);
        let mut watched = Watched::new(1.0, Some(recorded));
        assert_eq!(at(&mut watched, 100, &[flow(sys::STAGE_CLOSED, 1, 99_000)]), []);
        // No earlier daemon has recorded its end.
        let mut watched = Watched::new(1.0, Some(Earlier::new()));
        assert_eq!(at(&mut watched, 100, &[flow(sys::STAGE_CLOSED, 1, 99_000)]).len(), 1);
        let mut watched = Watched::new(1.0, Some(Earlier::new()));
        let mut old = flow(sys::STAGE_ESTABLISHED, 5_000, 99_000);
        old.state.0.retransmissions = 70;
        assert_eq!(at(&mut watched, 100, &[old]), []);
        let mut closed = flow(sys::STAGE_CLOSED, 7_000, 101_000);
        closed.state.0.retransmissions = 75;
        let records = at(&mut watched, 101, &[closed]);
        let [Record { is_whole: false, acked_bytes: 2_000, retransmissions, .. }] = &records[..]
        else {
            panic!("{records:?}")
        };
        assert_eq!(*retransmissions, 5.0, "as the bytes, since it was first seen");
    }

    #[test]
    fn a_port_that_cannot_be_read_ends_no_connection() {
        let mut watched = begun();
        let live = flow(sys::STAGE_ESTABLISHED, 10, 101_000);
        at(&mut watched, 101, std::slice::from_ref(&live));
        let mut no_record = |record: Record| panic!("{record:?}");
        let unread = HashSet::from([live.port.to_string()]);
        let read = Read { flows: &[], unread, now: Duration::from_secs(102) };
        watched.read(read, &mut no_record);
        assert_eq!(at(&mut watched, 103, &[live]), []);
        // Another port's failure does not keep it.
        let unread = HashSet::from(["other".to_owned()]);
        let mut records = Vec::new();
        let read = Read { flows: &[], unread, now: Duration::from_secs(104) };
        watched.read(read, &mut |record| records.push(record));
        assert_eq!(records.len(), 1);
        assert!(watched.connections.is_empty());
    }

    #[test]
    fn a_device_that_is_renamed_keeps_its_connections() {
        let mut watched = begun();
        let mut live = flow(sys::STAGE_ESTABLISHED, 10, 101_000);
        at(&mut watched, 101, std::slice::from_ref(&live));
        (live.port, live.key.0) = ("other".into(), "other".into());
        assert_eq!(at(&mut watched, 102, &[live]), []);
        assert_eq!(at(&mut watched, 103, &[]).len(), 1);
    }

    #[test]
    fn a_connection_that_nobody_used_is_told_apart() {
        let mut watched = begun();
        let records = at(&mut watched, 101, &[flow(sys::STAGE_CLOSED, 0, 101_000)]);
        let [Record { end: End::Unused, acked_bytes: 0, .. }] = &records[..] else {
            panic!("{records:?}")
        };
    }

    #[test]
    fn bytes_that_were_not_read_in_time_are_not_made_up() {
        let mut watched = begun();
        at(&mut watched, 101, &[flow(sys::STAGE_ESTABLISHED, 10, 101_000)]);
        at(&mut watched, 109, &[flow(sys::STAGE_ESTABLISHED, 2_500_000_010, 109_000)]);
        let records = at(&mut watched, 110, &[flow(sys::STAGE_CLOSED, 2_500_000_020, 110_000)]);
        let [Record { is_whole: false, acked_bytes: 20, .. }] = &records[..] else {
            panic!("{records:?}")
        };
    }

    #[test]
    fn a_share_is_recorded() {
        let mut watched = Watched::new(0.25, Some(Earlier::new()));
        let closed = |port: u32| {
            let end = format!("10.0.0.1:{port}");
            flow_of(&end, PEER, flow(sys::STAGE_CLOSED, 1, 101_000).state)
        };
        let flows: Vec<FlowView> = (1..4001).map(closed).collect();
        at(&mut watched, 100, &[]);
        let count = at(&mut watched, 101, &flows).len();
        assert!((800..1200).contains(&count), "{count} of 4000");
    }
}
