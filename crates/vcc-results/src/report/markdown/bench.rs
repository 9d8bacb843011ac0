//! The block of a benchmark.

use super::origin::{build, machine};
use super::text::{code, line, table, wrapped};
use crate::report::BenchReport;
use crate::report::bench::{Figure, Figures, Measurements, Spread};
use crate::report::origin::portable_command;
use crate::report::when::utc_or_unknown;

pub fn block(report: &BenchReport) -> String {
    let (table, samples) = match &report.measurements {
        Measurements::Connections(costs) => {
            let row = |cost: &crate::report::bench::CrowdCost| {
                let over = format!("{:.2}", cost.over_fewest);
                vec![cost.connections.to_string(), line(&cost.what), spread(&cost.ns, 0), over]
            };
            let rows: Vec<_> = costs.iter().map(row).collect();
            let head = ["connections", "in random order", "ns", "over the fewest"];
            let samples = costs.first().map_or(0, |cost| cost.ns.samples);
            (table(&head, &rows), format!("{samples} rounds"))
        }
        Measurements::Datapath(costs) => {
            let rewriter = costs.iter().find(|cost| cost.name == "rewriter");
            let row = |cost: &crate::report::bench::Cost| {
                let ratio = rewriter.map(|it| format!("{:.2}", cost.ns.median / it.ns.median));
                let (net, gross) = (spread(&cost.ns, 0), spread(&cost.gross_ns, 0));
                vec![line(&cost.what), net, gross, ratio.unwrap_or_default()]
            };
            let rows: Vec<_> = costs.iter().map(row).collect();
            let head =
                ["program", "ns, without the harness", "ns, with the harness", "over the rewriter"];
            let samples = costs.first().map_or(0, |cost| cost.ns.samples);
            (table(&head, &rows), format!("{samples} turns of 10,000 runs each"))
        }
        Measurements::Domain(costs) => {
            let row = |cost: &crate::report::bench::SegmentCost| {
                let gbit_s = cost.gbit_s.as_ref().map(|it| spread(it, 1)).unwrap_or_default();
                vec![line(&cost.what), spread(&cost.ns, 0), gbit_s]
            };
            let rows: Vec<_> = costs.iter().map(row).collect();
            let samples = costs.first().map_or(0, |cost| cost.ns.samples);
            (table(&["at the port", "ns", "Gbit/s"], &rows), format!("{samples} rounds"))
        }
        Measurements::Flood(figures) => {
            let row = |it: &Figures| {
                let decimals = if it.value.median.abs() >= 100.0 { 0 } else { 3 };
                vec![line(&it.what), format!("{} {}", spread(&it.value, decimals), it.unit)]
            };
            let rows: Vec<_> = figures.iter().map(row).collect();
            let samples = figures.first().map_or(0, |it| it.value.samples);
            (table(&["beside a flood", "median"], &rows), format!("{samples} rounds"))
        }
        Measurements::Host(figures) | Measurements::Ports(figures) => {
            return of_one_run(report, figures);
        }
        Measurements::Throughput(it) => {
            let rows = [
                ("with vcc attached, Gbit/s", &it.attached_gbit_s),
                ("with programs attached that only parse, Gbit/s", &it.parsed_gbit_s),
                ("by the detour of `vcc domain --device`, Gbit/s", &it.detour_gbit_s),
                ("without any program, Gbit/s", &it.detached_gbit_s),
                ("attached over detached", &it.ratio),
                ("parsed over detached", &it.parsed_ratio),
                ("the detour over detached", &it.detour_ratio),
            ];
            let rows: Vec<_> =
                rows.map(|(what, it)| vec![what.to_owned(), spread(it, 3)]).into_iter().collect();
            let head = ["bulk transfer between two namespaces", "median"];
            (table(&head, &rows), format!("{} rounds", it.ratio.samples))
        }
        Measurements::Virtual(loads) => {
            let row = |load: &crate::report::bench::Load| {
                vec![
                    line(&load.what),
                    format!("{:.2}", load.goodput_gbit_s),
                    spread(&load.wall_per_virtual, 2),
                    format!("{:.2}", load.wall_s.median),
                ]
            };
            let rows: Vec<_> = loads.iter().map(row).collect();
            let head = ["load", "Gbit/s", "wall seconds per virtual second", "wall seconds in all"];
            let samples = loads.first().map_or(0, |load| load.wall_s.samples);
            (table(&head, &rows), format!("{samples} runs of each load"))
        }
    };
    let origin =
        format!("Medians, with the 10th and the 90th percentile, of {samples}. {}", origin(report));
    format!("\n{table}\n{}\n\n", wrapped(&origin))
}

fn of_one_run(report: &BenchReport, figures: &[Figure]) -> String {
    let row = |it: &Figure| vec![line(&it.what), format!("{} {}", it.number(), it.unit)];
    let rows: Vec<_> = figures.iter().map(row).collect();
    let origin = format!("One run. {}", origin(report));
    format!("\n{}\n{}\n\n", table(&[report.name(), "measured"], &rows), wrapped(&origin))
}

fn origin(report: &BenchReport) -> String {
    format!(
        "Measured on {} with {}; {}. {}",
        utc_or_unknown(report.finished_unix_s),
        build(report.vcc_version.as_deref()),
        machine(report.machine.kernel_version(), report.machine.cpus),
        code(&portable_command(&report.command)),
    )
}

fn spread(spread: &Spread, decimals: usize) -> String {
    let Spread { median, p10, p90, .. } = spread;
    format!("{median:.decimals$} ({p10:.decimals$} to {p90:.decimals$})")
}
