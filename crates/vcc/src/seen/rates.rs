//! How much changed between reads. A connection's own counters wrap; what is summed up here
//! does not.

use std::collections::HashMap;
use std::time::Duration;

use vcc_engine::{FlowState, sys};

use super::flow::FlowKey;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    pub goodput_bits_per_s: f64,
    pub marks_per_s: f64,
    pub reductions_per_s: f64,
    pub retransmissions_per_s: f64,
}

/// What the connections came to since the rates were taken last.
#[derive(Default)]
pub struct Progress {
    flows: HashMap<FlowKey, Counted>,
    round: u64,
}

#[derive(Clone, Copy)]
struct Counted {
    last: Counters,
    /// None: it was first seen in this time, so that there is nothing to compare it with.
    sum: Option<Sum>,
    since: Duration,
    round: u64,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    acked_bytes: u64,
    marks: u64,
    reductions: u64,
    retransmissions: u64,
}

/// Those of one read.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    is_established: bool,
    snd_una: u32,
    marks: u32,
    reductions: u32,
    retransmissions: u32,
}

impl Counters {
    pub fn of(state: &FlowState) -> Self {
        Self {
            is_established: u32::from(state.stage) == sys::STAGE_ESTABLISHED,
            snd_una: state.snd_una,
            marks: state.marks,
            reductions: state.reductions,
            retransmissions: state.retransmissions,
        }
    }

    /// None: it is another connection between the same ends, or has only begun.
    fn since(&self, earlier: &Self) -> Option<Sum> {
        let acked_bytes = self.snd_una.wrapping_sub(earlier.snd_una);
        let counted = |now: u32, then: u32| now.checked_sub(then).map(u64::from);
        // Half of the sequence numbers lie behind, and no connection goes there.
        if !earlier.is_established || acked_bytes >= 1 << 31 {
            return None;
        }
        Some(Sum {
            acked_bytes: acked_bytes.into(),
            marks: counted(self.marks, earlier.marks)?,
            reductions: counted(self.reductions, earlier.reductions)?,
            retransmissions: counted(self.retransmissions, earlier.retransmissions)?,
        })
    }
}

impl Progress {
    /// At `at` since whatever epoch. Call this often enough that no connection acknowledges two
    /// gigabytes in between, and [`Self::forget`] after each read.
    pub fn note(&mut self, at: Duration, key: FlowKey, counters: Counters) {
        let round = self.round;
        let fresh = Counted { last: counters, sum: None, since: at, round };
        let Some(known) = self.flows.get_mut(&key) else {
            self.flows.insert(key, fresh);
            return;
        };
        let Some(news) = counters.since(&known.last) else {
            *known = fresh;
            return;
        };
        let sum = known.sum.get_or_insert_default();
        sum.acked_bytes += news.acked_bytes;
        sum.marks += news.marks;
        sum.reductions += news.reductions;
        sum.retransmissions += news.retransmissions;
        (known.last, known.round) = (counters, round);
    }

    /// Connections that were not noted since the last call have gone.
    pub fn forget(&mut self) {
        let round = self.round;
        self.flows.retain(|_, counted| counted.round == round);
        self.round += 1;
    }

    /// Since the rates of this connection were taken last.
    pub fn take(&mut self, at: Duration, key: &FlowKey) -> Option<Rates> {
        let counted = self.flows.get_mut(key)?;
        let sum = counted.sum?;
        let seconds = at.checked_sub(counted.since)?.as_secs_f64();
        if seconds <= 0.0 {
            return None;
        }
        (counted.sum, counted.since) = (Some(Sum::default()), at);
        let per_s = |count: u64| count as f64 / seconds;
        Some(Rates {
            goodput_bits_per_s: 8.0 * per_s(sum.acked_bytes),
            marks_per_s: per_s(sum.marks),
            reductions_per_s: per_s(sum.reductions),
            retransmissions_per_s: per_s(sum.retransmissions),
        })
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
            FlowId { guest: end("192.0.2.1:40000"), peer: end("192.0.2.2:80"), vlan: None },
        )
    }

    fn counters(snd_una: u32, marks: u32) -> Counters {
        Counters { is_established: true, snd_una, marks, reductions: 0, retransmissions: 0 }
    }

    /// Notes each at its second, and takes the rates at the last.
    fn rates(reads: &[Counters]) -> Option<Rates> {
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
        let reads = [counters(u32::MAX - 499, 3), counters(500, 4), counters(1500, 7)];
        let expected = Rates { goodput_bits_per_s: 8000.0, marks_per_s: 2.0, ..Default::default() };
        assert_eq!(rates(&reads), Some(expected));
    }

    #[test]
    fn a_span_may_hold_more_than_sequence_numbers_do() {
        let reads: Vec<Counters> = (0..10).map(|read| counters(read << 30, 0)).collect();
        let bits_per_s = rates(&reads).expect("rates").goodput_bits_per_s;
        assert_eq!(bits_per_s, 8.0 * f64::from(1 << 30));
    }

    #[test]
    fn what_cannot_be_compared_has_no_rate() {
        assert_eq!(rates(&[counters(500, 0)]), None);
        assert_eq!(rates(&[counters(500, 0), counters(400, 0)]), None, "it begins anew");
        assert_eq!(rates(&[counters(500, 5), counters(600, 0)]), None, "it begins anew");
        let opening = Counters { is_established: false, ..counters(500, 0) };
        assert_eq!(rates(&[opening, counters(501, 0)]), None);
        assert!(rates(&[opening, counters(501, 0), counters(502, 0)]).is_some());
    }

    #[test]
    fn rates_are_of_the_time_since_they_were_taken() {
        let mut progress = Progress::default();
        let second = Duration::from_secs;
        progress.note(second(1), key(), counters(0, 0));
        progress.note(second(2), key(), counters(100, 0));
        assert_eq!(progress.take(second(2), &key()).expect("rates").goodput_bits_per_s, 800.0);
        progress.note(second(4), key(), counters(300, 0));
        assert_eq!(progress.take(second(4), &key()).expect("rates").goodput_bits_per_s, 800.0);
        progress.forget();
        progress.forget();
        assert_eq!(progress.take(second(5), &key()), None, "forgotten with its connection");
    }
}
