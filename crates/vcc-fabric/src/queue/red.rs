//! Random Early Detection, as Linux computes it (net/sched/sch_red.c, include/net/red.h).

use super::red_parameters::{Given, RedParameters};
use super::{Arrival, Queue, QueueSpec, Verdict, has_room};
use serde::{Deserialize, Serialize};
use vcc_net::random::SplitMix64;

/// Parameters under the meanings of tc-red(8).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedSpec {
    pub min_bytes: u32,
    pub max_bytes: u32,
    pub limit_bytes: u64,
    pub average_packet_bytes: u32,
    pub burst_packets: u32,
    pub probability: f64,
    /// Mark what can be marked, instead of dropping it.
    pub ecn: bool,
}

impl QueueSpec for RedSpec {
    fn build(&self, rate_bps: u64, seed: u64) -> Result<Box<dyn Queue>, String> {
        let parameters = RedParameters::derive(&Given {
            min_bytes: self.min_bytes,
            max_bytes: self.max_bytes,
            average_packet_bytes: self.average_packet_bytes,
            burst_packets: self.burst_packets,
            probability: self.probability,
            rate_bps,
        })?;
        Ok(Box::new(Red::new(parameters, self.limit_bytes, self.ecn, seed)))
    }
}

struct Red {
    parameters: RedParameters,
    limit_bytes: u64,
    ecn: bool,
    random: SplitMix64,
    /// Average backlog, scaled by `2^wlog`.
    average_scaled: u64,
    /// Frames since the last mark; -1 outside the region of random marking.
    count: i64,
    threshold: u32,
    last_arrival_ns: u64,
}

impl Red {
    fn new(parameters: RedParameters, limit_bytes: u64, ecn: bool, seed: u64) -> Self {
        Self {
            parameters,
            limit_bytes,
            ecn,
            random: SplitMix64::new(seed),
            average_scaled: 0,
            count: -1,
            threshold: 0,
            last_arrival_ns: 0,
        }
    }

    /// red_calc_qavg()
    fn update_average(&mut self, arrival: &Arrival) {
        let average = self.average_scaled;
        self.average_scaled = match arrival.idle_since_ns {
            None => average + arrival.backlog_bytes - (average >> self.parameters.wlog),
            // A frame that found the link idle and was dropped starts the idle time anew.
            Some(since_ns) => {
                let since_ns = since_ns.max(self.last_arrival_ns);
                self.decayed(arrival.now_ns.saturating_sub(since_ns) / 1000)
            }
        };
        self.last_arrival_ns = arrival.now_ns;
    }

    /// red_calc_qavg_from_idle_time()
    fn decayed(&self, idle_us: u64) -> u64 {
        let RedParameters { scell_log, ref stab, .. } = self.parameters;
        let idle_us = idle_us.min(255 << scell_log);
        let average = self.average_scaled;
        match stab[(idle_us >> scell_log) as usize & 0xff] {
            0 => {
                let lost = (average * idle_us) >> scell_log;
                if lost < average >> 1 { average - lost } else { average >> 1 }
            }
            shift => average >> shift,
        }
    }

    /// red_random()
    fn draw_threshold(&mut self) {
        self.threshold = self.random.next_u32() / self.parameters.max_p_delta;
    }

    /// red_action(): whether the frame is to carry or suffer a congestion signal.
    fn signals(&mut self) -> bool {
        if self.average_scaled < self.parameters.min_scaled {
            self.count = -1;
            return false;
        }
        if self.average_scaled >= self.parameters.max_scaled {
            self.count = -1;
            return true;
        }
        self.count += 1;
        if self.count == 0 {
            self.draw_threshold();
            return false;
        }
        let excess = (self.average_scaled - self.parameters.min_scaled) >> self.parameters.wlog;
        let signal = excess as i64 * self.count >= i64::from(self.threshold);
        if signal {
            self.count = 0;
            self.draw_threshold();
        }
        signal
    }
}

impl Queue for Red {
    fn admit(&mut self, arrival: &Arrival) -> Verdict {
        self.update_average(arrival);
        let signal = self.signals();
        if signal && !(self.ecn && arrival.ecn_capable) {
            Verdict::DropEarly
        } else if !has_room(arrival, self.limit_bytes) {
            Verdict::DropFull
        } else if signal {
            Verdict::Mark
        } else {
            Verdict::Accept
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(min_bytes: u32, max_bytes: u32, burst_packets: u32, probability: f64) -> Red {
        let parameters = RedParameters::derive(&Given {
            min_bytes,
            max_bytes,
            average_packet_bytes: 1500,
            burst_packets,
            probability,
            rate_bps: 10_000_000,
        });
        Red::new(parameters.unwrap(), 1_000_000, true, 7)
    }

    fn arrival(backlog_bytes: u64, ecn_capable: bool) -> Arrival {
        Arrival { now_ns: 0, frame_bytes: 1514, backlog_bytes, idle_since_ns: None, ecn_capable }
    }

    /// RED1, by hand: weight 1/2, so the scaled average is a' = q + a - (a >> 1).
    #[test]
    fn hand_computed_averages() {
        let mut red = red(90_000, 90_001, 61, 1.0);
        for (backlog, average) in [
            (100_000, 100_000),
            (100_000, 150_000),
            (100_000, 175_000),
            (90_001, 177_501),
            (95_000, 183_751),
            (0, 91_876),
        ] {
            let verdict = red.admit(&arrival(backlog, true));
            assert_eq!(red.average_scaled, average);
            let expected = if average >= 180_002 { Verdict::Mark } else { Verdict::Accept };
            assert_eq!(verdict, expected, "average {average}");
        }
    }

    #[test]
    fn what_cannot_be_marked_is_dropped_and_a_full_queue_takes_nothing() {
        let mut red = red(90_000, 90_001, 61, 1.0);
        red.average_scaled = 400_000;
        assert_eq!(red.admit(&arrival(200_000, false)), Verdict::DropEarly);
        assert_eq!(red.admit(&arrival(200_000, true)), Verdict::Mark);
        assert_eq!(red.admit(&arrival(999_000, true)), Verdict::DropFull);
        red.ecn = false;
        assert_eq!(red.admit(&arrival(200_000, true)), Verdict::DropEarly);
    }

    /// The average follows a floating-point EWMA of the same weight within its rounding: each
    /// step truncates less than one, and errors shrink by 1 - w, so at most 2^wlog remains.
    #[test]
    fn follows_a_floating_point_average() {
        let mut red = red(30_000, 90_000, 55, 0.02);
        let scale = f64::from(1_u32 << red.parameters.wlog);
        let weight = 1.0 / scale;
        let mut reference = 0.0_f64;
        let mut random = SplitMix64::new(1);
        for _ in 0..20_000 {
            let backlog = random.next_u64() % 120_000;
            reference = reference * (1.0 - weight) + weight * backlog as f64;
            red.admit(&arrival(backlog, true));
            let average = red.average_scaled as f64 / scale;
            assert!((average - reference).abs() <= 1.0, "{average} {reference}");
        }
    }

    /// Between the thresholds the gap between marks is uniform over 1/p frames (Floyd and
    /// Jacobson 1993, 7), so that the share of marks is 2p/(1+p) at a constant average.
    #[test]
    fn share_of_marks_between_the_thresholds() {
        let mut red = red(30_000, 90_000, 55, 0.02);
        let backlog = 75_000;
        red.average_scaled = backlog << red.parameters.wlog;
        let frames = 400_000;
        let marks =
            (0..frames).filter(|_| red.admit(&arrival(backlog, true)) == Verdict::Mark).count();
        let p = 0.02 * 45_000.0 / 60_000.0;
        let expected = 2.0 * p / (1.0 + p);
        let share = marks as f64 / f64::from(frames);
        assert!((share / expected - 1.0).abs() < 0.03, "share {share} expected {expected}");
    }

    /// An idle link forgets: by the table for long times, in proportion for short ones.
    #[test]
    fn idle_time_lowers_the_average() {
        let mut red = red(90_000, 90_001, 61, 1.0);
        let idle = |us: u64, last_ns: u64, red: &mut Red| {
            red.average_scaled = 160_000;
            red.last_arrival_ns = last_ns;
            let now_ns = 5_000_000_000;
            let since = Some(now_ns - us * 1000);
            red.admit(&Arrival { now_ns, idle_since_ns: since, ..arrival(0, true) });
            red.average_scaled
        };
        assert_eq!(idle(0, 0, &mut red), 160_000);
        assert_eq!(idle(512, 0, &mut red), 160_000 - 160_000 * 512 / 2048);
        assert_eq!(idle(14 * 2048, 0, &mut red), 80_000);
        assert_eq!(idle(27 * 2048, 0, &mut red), 40_000);
        assert_eq!(idle(4_000_000, 0, &mut red), 0);
        // The frame before was dropped at an idle link 512 us ago.
        let last_ns = 5_000_000_000 - 512_000;
        assert_eq!(idle(4_000_000, last_ns, &mut red), 120_000);
    }
}
