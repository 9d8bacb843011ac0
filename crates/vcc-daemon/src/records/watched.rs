//! The connections of all ports, from one read to the next.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use vcc_engine::{FlowState, sys};
use vcc_view::{FlowKey, FlowView};

use super::record::{End, Record};

/// A connection that lives, or of which the record has been made.
struct Connection {
    /// Its own among those between the same two ends: the guest's initial sequence number.
    iss: u32,
    snd_una: u32,
    acked_bytes: u64,
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
    connections: HashMap<FlowKey, Connection>,
    round: u64,
    /// The share of connections that are recorded, of 2^32.
    threshold: u64,
    hasher: RandomState,
}

impl Watched {
    /// `share`: of the connections, above 0 and at most 1.
    pub fn new(share: f64) -> Self {
        let threshold = (share * (1_u64 << 32) as f64) as u64;
        Self { connections: HashMap::new(), round: 0, threshold, hasher: RandomState::new() }
    }

    /// Takes a read of all connections at `now` of CLOCK_MONOTONIC, and makes records of those that have
    /// ended. If the read is not complete, those that are missing may live.
    pub fn read(
        &mut self,
        flows: &[FlowView],
        is_complete: bool,
        now: Duration,
        write: &mut dyn FnMut(Record),
    ) {
        self.round += 1;
        for flow in flows {
            self.note(flow, now, write);
        }
        if !is_complete {
            return;
        }
        let round = self.round;
        self.connections.retain(|_, connection| {
            if connection.round != round {
                connection.end(End::Forgotten, now, write);
            }
            connection.round == round
        });
    }

    fn note(&mut self, flow: &FlowView, now: Duration, write: &mut dyn FnMut(Record)) {
        let state = &flow.state;
        let is_closed = u32::from(state.stage) == sys::STAGE_CLOSED;
        let known = self.connections.get_mut(&flow.key);
        match known {
            Some(known) if known.iss == state.iss => {
                known.round = self.round;
                known.grow(flow, now);
                if is_closed {
                    known.end(End::Closed, now, write);
                }
                return;
            }
            // A later connection between the same ends.
            Some(known) => known.end(End::Forgotten, now, write),
            None => {}
        }
        // A handshake that has not ended may never do so, and is no connection yet.
        let is_first_read = self.round == 1;
        if !is_closed && u32::from(state.stage) != sys::STAGE_ESTABLISHED {
            self.connections.remove(&flow.key);
            return;
        }
        let is_recorded =
            self.hasher.hash_one((&flow.key, state.iss)) & 0xffff_ffff < self.threshold;
        // What has ended before the first read, an earlier daemon has recorded.
        let is_wanted = is_recorded && !(is_first_read && is_closed);
        let mut connection = Connection {
            iss: state.iss,
            snd_una: state.snd_una,
            acked_bytes: if is_first_read { 0 } else { acked_since_its_syn(state) },
            first_seen: now,
            last_read: now,
            is_whole: !is_first_read,
            limited_s: BTreeMap::new(),
            last: is_wanted.then(|| Box::new(flow.clone())),
            round: self.round,
        };
        if is_closed {
            connection.end(End::Closed, now, write);
        }
        self.connections.insert(flow.key.clone(), connection);
    }
}

impl Connection {
    fn grow(&mut self, flow: &FlowView, now: Duration) {
        let Some(last) = &mut self.last else { return };
        let passed_s = now.saturating_sub(self.last_read).as_secs_f64();
        *self.limited_s.entry(last.limit.name()).or_default() += passed_s;
        let acked_bytes = flow.state.snd_una.wrapping_sub(self.snd_una);
        // It does not go back, but an ACK that is far ahead may have been forged.
        if acked_bytes <= i32::MAX as u32 {
            self.acked_bytes += u64::from(acked_bytes);
        }
        (self.snd_una, self.last_read) = (flow.state.snd_una, now);
        **last = flow.clone();
    }

    fn end(&mut self, end: End, now: Duration, write: &mut dyn FnMut(Record)) {
        let Some(last) = self.last.take() else { return };
        let silent = silent(&last.state, now);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let lasted = now.saturating_sub(silent).checked_sub(self.first_seen);
        let all_s: f64 = self.limited_s.values().sum();
        let shares = self.limited_s.iter().filter(|_| all_s > 0.0);
        write(Record {
            ended_unix_s: since_1970.saturating_sub(silent).as_secs_f64(),
            end,
            lasted_s: lasted.map(|lasted| lasted.as_secs_f64()),
            is_whole: self.is_whole,
            acked_bytes: self.acked_bytes,
            limited_by: shares.map(|(name, s)| ((*name).to_owned(), s / all_s)).collect(),
            ..Record::of_flow(&last)
        });
    }
}

/// New data, without the SYN.
fn acked_since_its_syn(state: &FlowState) -> u64 {
    state.snd_una.wrapping_sub(state.iss).saturating_sub(1).into()
}

/// The time since its last segment.
fn silent(state: &FlowState, now: Duration) -> Duration {
    let ms = (now.as_millis() as u32).wrapping_sub(state.last_seen_ms);
    // The clock of the segments may be a little ahead of the read.
    Duration::from_millis(if ms > i32::MAX as u32 { 0 } else { ms.into() })
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
        watched.read(flows, true, Duration::from_secs(s), &mut |record| records.push(record));
        records
    }

    fn begun() -> Watched {
        let mut watched = Watched::new(1.0);
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
        let [of_next, of_short] = &records[..] else { panic!("{records:?}") };
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
        let mut watched = Watched::new(1.0);
        assert_eq!(at(&mut watched, 100, &[flow(sys::STAGE_CLOSED, 1, 99_000)]), []);
        let mut watched = Watched::new(1.0);
        assert_eq!(at(&mut watched, 100, &[flow(sys::STAGE_ESTABLISHED, 5_000, 99_000)]), []);
        let records = at(&mut watched, 101, &[flow(sys::STAGE_CLOSED, 7_000, 101_000)]);
        let [Record { is_whole: false, acked_bytes: 2_000, .. }] = &records[..] else {
            panic!("{records:?}")
        };
    }

    #[test]
    fn a_port_that_cannot_be_read_ends_no_connection() {
        let mut watched = begun();
        let live = flow(sys::STAGE_ESTABLISHED, 10, 101_000);
        at(&mut watched, 101, std::slice::from_ref(&live));
        let mut no_record = |record: Record| panic!("{record:?}");
        watched.read(&[], false, Duration::from_secs(102), &mut no_record);
        assert_eq!(at(&mut watched, 103, &[live]), []);
    }

    #[test]
    fn a_share_is_recorded() {
        let mut watched = Watched::new(0.25);
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
