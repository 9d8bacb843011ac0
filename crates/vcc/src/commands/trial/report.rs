//! The figures of a trial, and what they mean.

use serde::Serialize;
use vcc_command::table::{Align, Table};
use vcc_view::trial::{Sums, Tally, percent};
use vcc_view::{Cost, units};

use super::By;

#[derive(Serialize)]
pub struct Report {
    lasted_s: f64,
    reads: u64,
    /// In other modes, at the last read.
    other_connections: usize,
    /// Of vcc itself at the ports, as the share of one CPU; None if it cannot be read.
    cost_cpu: Option<f64>,
    /// The mean of a frame, of all modes and protocols.
    cost_frame_ns: Option<f64>,
    frames_per_s: Option<f64>,
    total: Sums,
    groups: Vec<Sums>,
}

impl Report {
    /// `costs` are those of the ports.
    pub fn new(tally: &Tally, by: By, costs: &[Cost]) -> Self {
        let groups = tally.by(|watch| match by {
            By::Port => Some(&watch.port),
            By::Rule => watch.rule.as_ref(),
            By::Tenant => watch.tenant.as_ref(),
        });
        let work = || costs.iter().filter_map(Cost::work);
        let frames_per_s: f64 = work().map(|work| work.frames_per_s).sum();
        let busy_ns: f64 =
            work().map(|work| work.frames_per_s * work.frame_ns.unwrap_or_default()).sum();
        Self {
            lasted_s: tally.lasted.as_secs_f64(),
            reads: tally.reads,
            other_connections: tally.others,
            cost_cpu: (!costs.is_empty()).then(|| costs.iter().map(|cost| cost.cpu).sum()),
            cost_frame_ns: (frames_per_s > 0.0).then(|| busy_ns / frames_per_s),
            frames_per_s: (!costs.is_empty()).then_some(frames_per_s),
            total: tally.total(),
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
            table.row(cells(sums));
        }
        let others = match self.other_connections {
            0 => String::new(),
            others => format!("; {others} in other modes are not judged"),
        };
        format!(
            "{}{} reads in {:.1} s{others}\n\n{}{}\n",
            table.render(),
            self.reads,
            self.lasted_s,
            self.cost(),
            self.total.conclusion()
        )
    }

    /// A sentence; empty if it is not known.
    fn cost(&self) -> String {
        let (Some(cpu), Some(frames_per_s)) = (self.cost_cpu, self.frames_per_s) else {
            return String::new();
        };
        let frame = self.cost_frame_ns.map_or(String::new(), |ns| {
            format!(", {} for each of {frames_per_s:.0} frames a second", units::NS.write(ns))
        });
        format!("vcc itself took {:.2} % of a CPU{frame}.\n", cpu * 100.0)
    }
}

fn cells(sums: &Sums) -> [String; 13] {
    let time = |us: Option<f64>| us.map_or("-".into(), units::duration);
    [
        sums.name.clone(),
        sums.underlays.join(","),
        sums.connections.to_string(),
        sums.limited_connections.to_string(),
        units::bytes(sums.acked_bytes as f64),
        percent(sums.limited_bytes_share),
        percent(sums.limited_time_share),
        sums.window_part.map_or("-".into(), |part| format!("{part:.2}")),
        // Unknown, not 0.
        if sums.guests_with_ecn > 0 { sums.marks.to_string() } else { "-".into() },
        sums.reductions.to_string(),
        sums.retransmissions.to_string(),
        time(sums.srtt_us),
        time(sums.queue_us),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use vcc_view::Work;
    use vcc_view::testing::shadow_flow as flow;

    use super::*;

    #[test]
    fn figures_become_a_table_and_a_sentence() {
        let mut tally = Tally::default();
        tally.note(Duration::ZERO, &[flow("tap2", 0, 28_800, 0), flow("tap9", 0, 100, 0)]);
        tally.note(
            Duration::from_secs(2),
            &[flow("tap2", 3000, 100, 4), flow("tap9", 1000, 100, 0)],
        );
        let work =
            |frames_per_s, ns| Some(Work { frames_per_s, frame_ns: Some(ns), ..Work::default() });
        let from_guest = work(3000.0, 100.0);
        let to_guest = work(1000.0, 500.0);
        let costs = [Cost { from_guest, to_guest, cpu: 800e-6 }];
        let report = Report::new(&tally, By::Port, &costs);
        let text = report.text();
        let lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1][..4], ["tap2", "dctcp", "1", "1"], "{text}");
        assert_eq!(lines[2][..4], ["tap9", "dctcp", "1", "0"], "{text}");
        assert_eq!(lines[3][..4], ["all", "dctcp", "2", "1"], "{text}");
        assert!(text.contains("2 reads in 2.0 s\n"), "{text}");
        let cost = "vcc itself took 0.08 % of a CPU, 200 ns for each of 4000 frames a second.\n";
        assert!(text.contains(cost), "{text}");
        assert!(!Report::new(&tally, By::Port, &[]).text().contains("vcc itself"), "unknown");
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
        let text = Report::new(&tally, By::Tenant, &[]).text();
        assert!(text.contains("would have limited no connection of 1:"), "{text}");
        assert!(text.contains("\n-  "), "{text}");
    }
}
