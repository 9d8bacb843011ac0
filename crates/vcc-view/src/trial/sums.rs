//! The figures of some connections, and what they mean.

use serde::Serialize;

use super::Watch;
use crate::units;

#[derive(Debug, Default, Serialize)]
pub struct Sums {
    pub name: String,
    pub underlays: Vec<&'static str>,
    pub connections: u64,
    /// Of which more was in flight than the underlay's window, at some read.
    pub limited_connections: u64,
    pub guests_with_ecn: u64,
    pub acked_bytes: u64,
    pub limited_bytes_share: Option<f64>,
    pub limited_time_share: Option<f64>,
    /// The underlay's window over what was in flight, where that was more: the median.
    pub window_part: Option<f64>,
    pub marks: u64,
    pub reductions: u64,
    pub retransmissions: u64,
    /// Medians over connections.
    pub srtt_us: Option<f64>,
    pub queue_us: Option<f64>,
}

impl Sums {
    pub(super) fn new(name: &str, watches: &[&Watch]) -> Self {
        let sum = |of: fn(&Watch) -> u64| watches.iter().map(|watch| of(watch)).sum::<u64>();
        let median_us = |of: fn(&Watch) -> Option<f64>| {
            median(watches.iter().filter_map(|watch| of(watch)).collect())
        };
        let mut underlays: Vec<_> = watches.iter().map(|watch| watch.underlay).collect();
        underlays.sort_unstable();
        underlays.dedup();
        let parts = watches.iter().flat_map(|watch| &watch.parts).map(|part| f64::from(*part));
        Self {
            name: name.to_owned(),
            underlays,
            connections: watches.len() as u64,
            limited_connections: sum(|watch| u64::from(!watch.parts.is_empty())),
            guests_with_ecn: sum(|watch| u64::from(watch.has_guest_ecn)),
            acked_bytes: sum(|watch| watch.growth.acked_bytes),
            limited_bytes_share: share(sum(|it| it.beyond_bytes), sum(|it| it.growth.acked_bytes)),
            limited_time_share: share(
                sum(|it| it.beyond.as_micros() as u64),
                sum(|it| it.watched.as_micros() as u64),
            ),
            window_part: median(parts.collect()),
            marks: sum(|watch| watch.growth.counts.marks),
            reductions: sum(|watch| watch.growth.counts.reductions),
            retransmissions: sum(|watch| watch.growth.counts.retransmissions),
            srtt_us: median_us(|watch| watch.srtt_us.map(f64::from)),
            queue_us: median_us(|watch| {
                let least_us = Some(watch.rtt_min_us).filter(|us| *us > 0)?;
                Some(f64::from(watch.srtt_us?.saturating_sub(least_us)))
            }),
        }
    }

    /// What an operator decides by.
    pub fn conclusion(&self) -> String {
        let underlays = self.underlays.join(", ");
        let connections = format!("{} of {}", self.limited_connections, self.connections);
        let mut text = match self.window_part {
            None => format!(
                "{underlays} would have limited no connection of {}: less was always in flight than its \
                 window.",
                self.connections
            ),
            Some(part) => format!(
                "{underlays} would have limited {} of the bytes, of {connections} connections, to {part:.2} of what \
                 was in flight (median).",
                percent(self.limited_bytes_share)
            ),
        };
        if let Some(srtt_us) = self.srtt_us {
            text += &format!(" The median round trip is {}", units::duration(srtt_us));
            text += &match self.queue_us {
                Some(queue_us) if queue_us > 0.0 => {
                    format!(
                        ", of which {} are above the least: a queue.",
                        units::duration(queue_us)
                    )
                }
                _ => ".".to_owned(),
            };
        }
        // In shadow mode, vcc negotiates no ECN for the guest.
        let without_ecn = self.connections - self.guests_with_ecn;
        if without_ecn > 0 {
            text += &format!(
                "\n{without_ecn} of {} connections are without ECN, so their marks cannot be seen in shadow mode: \
                 the underlay may limit them more. `vcc guests` shows which guests need translation.",
                self.connections
            );
        }
        text + "\nHow the guests would have answered smaller windows is not known."
    }
}

pub fn percent(share: Option<f64>) -> String {
    share.map_or("-".into(), |share| format!("{:.1} %", share * 100.0))
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
