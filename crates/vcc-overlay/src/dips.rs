//! BBR's pauses: to measure the path's propagation delay, BBR keeps at most four segments in flight
//! for 200 ms, 10 s after the last time (draft-ietf-ccwg-bbr: ProbeRTT).

use std::ops::RangeInclusive;

use crate::rounds::Round;

/// BBRMinPipeCwnd, plus one segment counted before an acknowledgement.
const DIP_SEGS: f64 = 5.0;
/// Minimum flight before a dip; a dip from less is not significant.
const ELSE_SEGS: f64 = 10.0;
/// ProbeRTTDuration, plus a few round trips.
const LENGTH_US: RangeInclusive<u64> = 150_000..=450_000;
/// ProbeRTTInterval, plus a margin. An application's pauses have no fixed interval.
const APART_US: RangeInclusive<u64> = 9_500_000..=12_000_000;
/// Round trips until the flight is restored; after an idle period it would slow-start.
const BACK_ROUNDS: u32 = 3;

#[derive(Clone, Debug, Default)]
pub(crate) struct Dips {
    /// The last large flight.
    before_segs: f64,
    since_us: Option<u64>,
    /// After a dip: its start, the round trips since, and the flight to be restored.
    over: Option<(u64, u32, f64)>,
    last_us: Option<u64>,
    /// Number of dips, and of those 10 s after the previous one.
    pub count: u32,
    pub in_time: u32,
}

impl Dips {
    pub fn note(&mut self, round: &Round) {
        self.come_back(round);
        let begun_us = round.at_us.saturating_sub(round.length_us);
        if round.peak_segs <= DIP_SEGS {
            if self.before_segs >= ELSE_SEGS {
                self.since_us.get_or_insert(begun_us);
            }
            return;
        }
        if let Some(since_us) = self.since_us.take() {
            if LENGTH_US.contains(&begun_us.saturating_sub(since_us)) {
                self.over = Some((since_us, 0, self.before_segs));
                self.come_back(round);
            }
        }
        self.before_segs = round.peak_segs;
    }

    fn come_back(&mut self, round: &Round) {
        let Some((since_us, rounds, before_segs)) = self.over else { return };
        if round.peak_segs < before_segs / 2.0 {
            self.over = (rounds < BACK_ROUNDS).then_some((since_us, rounds + 1, before_segs));
            return;
        }
        self.over = None;
        self.count += 1;
        let apart_us = self.last_us.map(|last_us| since_us.saturating_sub(last_us));
        self.in_time += u32::from(apart_us.is_some_and(|us| APART_US.contains(&us)));
        self.last_us = Some(since_us);
    }

    /// A loss or a mark explains the following dip.
    pub fn reduced(&mut self) {
        (self.before_segs, self.since_us, self.over) = (0.0, None, None);
    }
}
