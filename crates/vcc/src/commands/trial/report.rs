//! The figures of a trial, and what they mean.

use std::collections::BTreeMap;

use serde::Serialize;
use vcc_command::table::{Align, Table};
use vcc_view::units;

use super::By;
use super::tally::{Tally, Watch};

#[derive(Serialize)]
pub struct Report {
    lasted_s: f64,
    reads: u64,
    /// In other modes, at the last read.
    other_connections: usize,
    total: Sums,
    groups: Vec<Sums>,
}

/// Of some connections.
#[derive(Debug, Default, Serialize)]
struct Sums {
    name: String,
    underlays: Vec<&'static str>,
    connections: u64,
    /// Of which more was in flight than the underlay's window, at some read.
    limited_connections: u64,
    guests_with_ecn: u64,
    acked_bytes: u64,
    limited_bytes_share: Option<f64>,
    limited_time_share: Option<f64>,
    /// The underlay's window over what was in flight, where that was more: the median.
    window_part: Option<f64>,
    marks: u64,
    reductions: u64,
    retransmissions: u64,
    /// Medians over connections.
    srtt_us: Option<f64>,
    queue_us: Option<f64>,
}

impl Report {
    pub fn new(tally: &Tally, by: By) -> Self {
        let mut groups: BTreeMap<&str, Vec<&Watch>> = BTreeMap::new();
        for watch in tally.watches() {
            let name = match by {
                By::Port => Some(&watch.port),
                By::Rule => watch.rule.as_ref(),
                By::Tenant => watch.tenant.as_ref(),
            };
            groups.entry(name.map_or("-", |name| name)).or_default().push(watch);
        }
        let mut groups: Vec<Sums> =
            groups.iter().map(|(name, watches)| Sums::new(name, watches)).collect();
        groups.sort_by_key(|sums| std::cmp::Reverse(sums.acked_bytes));
        let all: Vec<&Watch> = tally.watches().collect();
        Self {
            lasted_s: tally.lasted.as_secs_f64(),
            reads: tally.reads,
            other_connections: tally.others,
            total: Sums::new("all", &all),
            groups,
        }
    }

    pub fn text(&self) -> String {
        let columns = [
            ("NAME", Align::Left),
            ("UNDERLAY", Align::Left),
            ("CONNECTIONS", Align::Right),
            ("LIMITED", Align::Right),
            ("ACKED", Align::Right),
            ("OF-BYTES", Align::Right),
            ("OF-TIME", Align::Right),
            ("WINDOW", Align::Right),
            ("MARKS", Align::Right),
            ("REDUCTIONS", Align::Right),
            ("RETRANS", Align::Right),
            ("SRTT", Align::Right),
            ("QUEUE", Align::Right),
        ];
        let mut table = Table::new(columns);
        let has_total = self.groups.len() > 1;
        for sums in self.groups.iter().chain(has_total.then_some(&self.total)) {
            table.row(sums.cells());
        }
        let others = match self.other_connections {
            0 => String::new(),
            others => format!("; {others} in other modes are not judged"),
        };
        format!(
            "{}{} reads in {:.1} s{others}\n\n{}\n",
            table.render(),
            self.reads,
            self.lasted_s,
            self.total.conclusion()
        )
    }
}

impl Sums {
    fn new(name: &str, watches: &[&Watch]) -> Self {
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
            acked_bytes: sum(|watch| watch.acked_bytes),
            limited_bytes_share: share(sum(|it| it.beyond_bytes), sum(|it| it.acked_bytes)),
            limited_time_share: share(
                sum(|it| it.beyond.as_micros() as u64),
                sum(|it| it.watched.as_micros() as u64),
            ),
            window_part: median(parts.collect()),
            marks: sum(|watch| watch.counts.marks),
            reductions: sum(|watch| watch.counts.reductions),
            retransmissions: sum(|watch| watch.counts.retransmissions),
            srtt_us: median_us(|watch| watch.srtt_us.map(f64::from)),
            queue_us: median_us(|watch| {
                let least_us = Some(watch.rtt_min_us).filter(|us| *us > 0)?;
                Some(f64::from(watch.srtt_us?.saturating_sub(least_us)))
            }),
        }
    }

    fn cells(&self) -> [String; 13] {
        let time = |us: Option<f64>| us.map_or("-".into(), units::duration);
        [
            self.name.clone(),
            self.underlays.join(","),
            self.connections.to_string(),
            self.limited_connections.to_string(),
            units::bytes(self.acked_bytes as f64),
            percent(self.limited_bytes_share),
            percent(self.limited_time_share),
            self.window_part.map_or("-".into(), |part| format!("{part:.2}")),
            self.marks.to_string(),
            self.reductions.to_string(),
            self.retransmissions.to_string(),
            time(self.srtt_us),
            time(self.queue_us),
        ]
    }

    /// What an operator decides by.
    fn conclusion(&self) -> String {
        let underlays = self.underlays.join(", ");
        let connections = format!("{} of {}", self.limited_connections, self.connections);
        let mut text = match self.window_part {
            None => format!(
                "{underlays} would have limited none of {} connections: less was always in flight than its \
                 window.",
                self.connections
            ),
            Some(part) => format!(
                "{underlays} would have limited {} of the bytes, of {connections} connections, to {part:.2} of what \
                 was in flight (median).",
                percent(self.limited_bytes_share)
            ),
        };
        if let (Some(srtt_us), Some(queue_us)) = (self.srtt_us, self.queue_us) {
            text += &format!(
                " The median round trip is {}, of which {} are above the least: a queue.",
                units::duration(srtt_us),
                units::duration(queue_us)
            );
        }
        text + "\nHow the guests would have answered smaller windows is not known."
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".into(), |share| format!("{:.1} %", share * 100.0))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tally::tests::flow;
    use super::*;

    #[test]
    fn figures_become_a_table_and_a_sentence() {
        let mut tally = Tally::default();
        tally.note(Duration::ZERO, &[flow("tap2", 0, 28_800, 0), flow("tap9", 0, 100, 0)]);
        tally.note(
            Duration::from_secs(2),
            &[flow("tap2", 3000, 100, 4), flow("tap9", 1000, 100, 0)],
        );
        let report = Report::new(&tally, By::Port);
        let text = report.text();
        let lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1][..4], ["tap2", "dctcp", "1", "1"], "{text}");
        assert_eq!(lines[2][..4], ["tap9", "dctcp", "1", "0"], "{text}");
        assert_eq!(lines[3][..4], ["all", "dctcp", "2", "1"], "{text}");
        assert!(text.contains("2 reads in 2.0 s\n"), "{text}");
        let sentence =
            "dctcp would have limited 75.0 % of the bytes, of 1 of 2 connections, to 0.50 of what";
        assert!(text.contains(sentence), "{text}");
        assert!(text.contains("is 1.25 ms, of which 1.00 ms are above the least"), "{text}");
        let json = serde_json::to_value(&report).expect("JSON");
        assert_eq!(
            (&json["groups"][0]["marks"], &json["total"]["limited_time_share"]),
            (&4.into(), &0.5.into())
        );
    }

    #[test]
    fn no_limit_is_a_result() {
        let mut tally = Tally::default();
        tally.note(Duration::ZERO, &[flow("tap2", 0, 100, 0)]);
        let text = Report::new(&tally, By::Tenant).text();
        assert!(text.contains("would have limited none of 1 connections"), "{text}");
        assert!(text.contains("\n-  "), "{text}");
    }
}
