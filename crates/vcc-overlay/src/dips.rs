//! Pauses as BBR makes them: to see the path's own delay it has no more than four segments in flight
//! for 200 ms, 10 s after the last time, whatever it sends else (draft-ietf-ccwg-bbr: ProbeRTT).

use std::ops::RangeInclusive;

use crate::rounds::Round;

/// BBRMinPipeCwnd, and one for what is counted before an acknowledgement.
const DIP_SEGS: f64 = 5.0;
/// A flight must be so large before, or the dip says nothing.
const ELSE_SEGS: f64 = 10.0;
/// ProbeRTTDuration, and a few round trips.
const LENGTH_US: RangeInclusive<u64> = 150_000..=450_000;
/// ProbeRTTInterval, likewise. An application that pauses does so when it likes.
const APART_US: RangeInclusive<u64> = 9_500_000..=12_000_000;
/// Until the flight is as large again; what was idle begins with slow start.
const BACK_ROUNDS: u32 = 3;

#[derive(Clone, Debug, Default)]
pub(crate) struct Dips {
    /// The last flight that was large.
    before_segs: f64,
    since_us: Option<u64>,
    /// After a dip: when it began, and how long the flight has not come back.
    over: Option<(u64, u32, f64)>,
    last_us: Option<u64>,
    /// How many there were, and how many came when the one before was 10 s past.
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

    /// A loss or a mark explains what comes.
    pub fn reduced(&mut self) {
        (self.before_segs, self.since_us, self.over) = (0.0, None, None);
    }
}
