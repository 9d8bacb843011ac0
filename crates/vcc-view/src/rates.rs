//! Rates of a connection between two reads.

use std::collections::HashMap;
use std::ops::AddAssign;
use std::time::Duration;

use serde::Serialize;
use vcc_engine::{FlowState, sys};

use crate::names::FlowKey;

/// Sequence numbers wrap after 4 GiB, and only half of them are ahead: with reads at this interval,
/// a connection's rate is right up to 34 Gbit/s.
pub const READ_EVERY: Duration = Duration::from_millis(500);

/// The counters of a connection, or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub marks: u64,
    pub reductions: u64,
    pub retransmissions: u64,
    pub drops: u64,
}

impl Counts {
    pub fn from_state(state: &FlowState) -> Self {
        Self {
            marks: state.marks.into(),
            reductions: state.reductions.into(),
            retransmissions: state.retransmissions.into(),
            drops: state.drops.into(),
        }
    }

    /// None if one of them has decreased.
    pub fn since(self, before: Self) -> Option<Self> {
        Some(Self {
            marks: self.marks.checked_sub(before.marks)?,
            reductions: self.reductions.checked_sub(before.reductions)?,
            retransmissions: self.retransmissions.checked_sub(before.retransmissions)?,
            drops: self.drops.checked_sub(before.drops)?,
        })
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.marks += other.marks;
        self.reductions += other.reductions;
        self.retransmissions += other.retransmissions;
        self.drops += other.drops;
    }
}

/// A connection's progress at one read.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    is_established: bool,
    snd_una: u32,
    window_shown_bytes: Option<u32>,
    srtt_us: Option<u32>,
    pub counts: Counts,
}

/// Between two reads of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    pub acked_bytes: u64,
    pub counts: Counts,
}

impl AddAssign for Growth {
    fn add_assign(&mut self, other: Self) {
        self.acked_bytes += other.acked_bytes;
        self.counts += other.counts;
    }
}

impl Growth {
    /// None if any of it has decreased.
    pub fn since(self, before: Self) -> Option<Self> {
        let acked_bytes = self.acked_bytes.checked_sub(before.acked_bytes)?;
        Some(Self { acked_bytes, counts: self.counts.since(before.counts)? })
    }
}

impl Counted {
    pub fn from_state(state: &FlowState) -> Self {
        Self {
            is_established: u32::from(state.stage) == sys::STAGE_ESTABLISHED,
            snd_una: state.snd_una,
            window_shown_bytes: state.window_shown_bytes(),
            srtt_us: state.srtt_us(),
            counts: Counts::from_state(state),
        }
    }

    /// Whether both reads are of one connection rather than of two between the same ends. An
    /// earlier connection would have larger counters, or sequence numbers ahead of this one's; half
    /// of all sequence numbers are ahead of any.
    pub fn continues(&self, earlier: &Self) -> bool {
        let is_ahead = self.acked_since(earlier) <= i32::MAX as u32;
        self.counts.since(earlier.counts).is_some() && (is_ahead || !earlier.is_established)
    }

    fn acked_since(&self, earlier: &Self) -> u32 {
        self.snd_una.wrapping_sub(earlier.snd_una)
    }

    /// None unless it [`Self::continues`].
    pub fn since(&self, earlier: &Self, elapsed: Duration) -> Option<Growth> {
        let counts = self.counts.since(earlier.counts).filter(|_| self.continues(earlier))?;
        let acked_bytes = self.acked_since(earlier);
        let counts_acked = earlier.is_established && self.admits(earlier, acked_bytes, elapsed);
        Some(Growth { acked_bytes: if counts_acked { acked_bytes.into() } else { 0 }, counts })
    }

    /// Another connection may have begun between the same ends with sequence numbers that are ahead:
    /// only as much is believed as the windows admit in that time.
    fn admits(&self, earlier: &Self, acked_bytes: u32, elapsed: Duration) -> bool {
        /// Windows and RTT are those of the two reads, not means.
        const SLACK: f64 = 8.0;
        let window = earlier.window_shown_bytes.max(self.window_shown_bytes);
        let (Some(window_bytes), Some(srtt_us @ 1..)) = (window, self.srtt_us) else { return true };
        let round_trips = elapsed.as_secs_f64() * 1e6 / f64::from(srtt_us) + 1.0;
        f64::from(acked_bytes) <= SLACK * f64::from(window_bytes) * round_trips
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    pub goodput_bits_per_s: f64,
    pub marks_per_s: f64,
    pub reductions_per_s: f64,
    pub retransmissions_per_s: f64,
    pub drops_per_s: f64,
}

impl AddAssign for Rates {
    fn add_assign(&mut self, other: Self) {
        self.goodput_bits_per_s += other.goodput_bits_per_s;
        self.marks_per_s += other.marks_per_s;
        self.reductions_per_s += other.reductions_per_s;
        self.retransmissions_per_s += other.retransmissions_per_s;
        self.drops_per_s += other.drops_per_s;
    }
}

impl Rates {
    /// None if no time has passed.
    pub fn over(growth: &Growth, elapsed: Duration) -> Option<Self> {
        let seconds = elapsed.as_secs_f64();
        let per_s = |count: u64| count as f64 / seconds;
        (seconds > 0.0).then(|| Self {
            goodput_bits_per_s: 8.0 * per_s(growth.acked_bytes),
            marks_per_s: per_s(growth.counts.marks),
            reductions_per_s: per_s(growth.counts.reductions),
            retransmissions_per_s: per_s(growth.counts.retransmissions),
            drops_per_s: per_s(growth.counts.drops),
        })
    }
}

/// The growth of connections since their rates were taken last, over any number of reads.
#[derive(Default)]
pub struct Progress {
    flows: HashMap<FlowKey, Noted>,
    round: u64,
}

#[derive(Clone, Copy)]
struct Noted {
    last: Counted,
    last_at: Duration,
    /// None after the first read.
    sum: Option<Growth>,
    since: Duration,
    round: u64,
}

impl Progress {
    /// A read at `at`, of any clock. Call [`Self::forget`] after each read of all flows. Returns the
    /// growth since the read before.
    pub fn note(&mut self, at: Duration, key: FlowKey, counted: Counted) -> Growth {
        let round = self.round;
        let first = Noted { last: counted, last_at: at, sum: None, since: at, round };
        let Some(known) = self.flows.get_mut(&key) else {
            self.flows.insert(key, first);
            return Growth::default();
        };
        let elapsed = at.saturating_sub(known.last_at);
        match counted.since(&known.last, elapsed).filter(|_| known.last.is_established) {
            Some(growth) => {
                *known.sum.get_or_insert_default() += growth;
                (known.last, known.last_at, known.round) = (counted, at, round);
                growth
            }
            None => {
                *known = first;
                Growth::default()
            }
        }
    }

    /// Forgets the connections that were not noted since the last call.
    pub fn forget(&mut self) {
        let round = self.round;
        self.flows.retain(|_, noted| noted.round == round);
        self.round += 1;
    }

    /// Since the rates of this connection were taken last.
    pub fn take(&mut self, at: Duration, key: &FlowKey) -> Option<Rates> {
        let noted = self.flows.get_mut(key)?;
        let rates = Rates::over(&noted.sum?, at.checked_sub(noted.since)?)?;
        (noted.sum, noted.since) = (Some(Growth::default()), at);
        Some(rates)
    }
}

#[cfg(test)]
mod tests {
    use vcc_port::FlowId;

    use super::*;

    fn key() -> FlowKey {
        let end = |text: &str| text.parse().expect("an end");
        (
            "port".into(),
            FlowId {
                guest: end("192.0.2.1:40000"),
                peer: end("192.0.2.2:80"),
                vlan: None,
                inside: false,
            },
        )
    }

    fn counted(snd_una: u32, marks: u64) -> Counted {
        let counts = Counts { marks, ..Default::default() };
        let (window_shown_bytes, srtt_us) = (None, None);
        Counted { is_established: true, snd_una, window_shown_bytes, srtt_us, counts }
    }

    /// Notes one read a second, and takes the rates at the last.
    fn rates(reads: &[Counted]) -> Option<Rates> {
        let mut progress = Progress::default();
        let mut at = Duration::ZERO;
        for read in reads {
            at += Duration::from_secs(1);
            progress.note(at, key(), *read);
            progress.forget();
        }
        progress.take(at, &key())
    }

    #[test]
    fn goodput_is_counted_across_the_wrap() {
        let reads = [counted(u32::MAX - 499, 3), counted(500, 4), counted(1500, 7)];
        let expected = Rates { goodput_bits_per_s: 8000.0, marks_per_s: 2.0, ..Default::default() };
        assert_eq!(rates(&reads), Some(expected));
    }

    #[test]
    fn many_reads_may_sum_up_to_more_than_sequence_numbers_hold() {
        let reads: Vec<Counted> = (0..10).map(|read| counted(read << 30, 0)).collect();
        let bits_per_s = rates(&reads).expect("rates").goodput_bits_per_s;
        assert_eq!(bits_per_s, 8.0 * f64::from(1 << 30));
    }

    #[test]
    fn the_highest_measurable_rate_is_34_gbit_per_s() {
        let bits_per_s = f64::from(i32::MAX) * 8.0 / READ_EVERY.as_secs_f64();
        assert!((34e9..35e9).contains(&bits_per_s), "{bits_per_s}");
        let (before, after) = (counted(0, 0), counted(i32::MAX as u32, 0));
        let growth = after.since(&before, READ_EVERY).expect("the same connection");
        assert_eq!(growth.acked_bytes, i32::MAX as u64);
        assert_eq!(counted(1 << 31, 0).since(&before, READ_EVERY), None);
    }

    #[test]
    fn another_connection_between_the_same_ends_has_no_rate() {
        assert_eq!(rates(&[counted(500, 0)]), None);
        assert_eq!(rates(&[counted(500, 0), counted(400, 0)]), None);
        assert_eq!(rates(&[counted(500, 5), counted(600, 0)]), None);
        let opening = Counted { is_established: false, ..counted(500, 0) };
        assert_eq!(rates(&[opening, counted(501, 0)]), None);
        assert!(rates(&[opening, counted(501, 0), counted(502, 0)]).is_some());
    }

    #[test]
    fn a_new_connection_is_not_taken_for_the_old() {
        assert!(counted(700, 0).continues(&counted(u32::MAX, 0)), "over the wrap");
        assert!(!counted(700, 0).continues(&counted(701, 0)));
        assert!(!counted(700, 0).continues(&counted(600, 1)));
        assert!(counted(700, 1).continues(&counted(600, 1)));
        let opening = Counted { is_established: false, ..counted(701, 0) };
        assert!(counted(700, 0).continues(&opening), "SND.UNA was not known");
    }

    #[test]
    fn no_more_is_believed_than_the_windows_admit() {
        let second = Duration::from_secs(1);
        let of_window = |snd_una, window_bytes, srtt_us| Counted {
            window_shown_bytes: Some(window_bytes),
            srtt_us: Some(srtt_us),
            ..counted(snd_una, 0)
        };
        let acked_bytes = |window_bytes| {
            let [before, after] =
                [2_000_000_000, 3_000_000_000].map(|at| of_window(at, window_bytes, 100_000));
            after.since(&before, second).expect("the same connection").acked_bytes
        };
        assert_eq!(acked_bytes(1440), 0);
        assert_eq!(acked_bytes(100 << 20), 1_000_000_000);
    }

    #[test]
    fn rates_are_of_the_time_since_they_were_taken() {
        let mut progress = Progress::default();
        let second = Duration::from_secs;
        progress.note(second(1), key(), counted(0, 0));
        progress.note(second(2), key(), counted(100, 0));
        assert_eq!(progress.take(second(2), &key()).expect("rates").goodput_bits_per_s, 800.0);
        progress.note(second(4), key(), counted(300, 0));
        assert_eq!(progress.take(second(4), &key()).expect("rates").goodput_bits_per_s, 800.0);
        progress.forget();
        progress.forget();
        assert_eq!(progress.take(second(5), &key()), None, "forgotten with its connection");
    }
}
