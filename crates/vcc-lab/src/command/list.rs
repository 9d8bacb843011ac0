use std::path::Path;
use std::process::ExitCode;

use vcc_command::output;
use vcc_command::table::{Align, Table};
use vcc_lab::Summary;
use vcc_results::report::Folder;

use crate::report::RECORDS;
use crate::time::Time;

/// List the experiments
///
/// TIME is that of a whole run without options. In the root of a checkout of vcc, it is what the
/// run took that results/data has. Otherwise, in real time, it is at least the sum of all runs, and
/// in virtual time it is this sum by the guests' clock, marked `virtual`: how long a virtual second
/// takes depends on the machine and the experiment.
///
/// BACKENDS are those that --backend accepts; the first is the default.
#[derive(clap::Args)]
pub struct Arguments {}

pub fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    let columns = [
        ("ID", Align::Left),
        ("TIME", Align::Right),
        ("BACKENDS", Align::Left),
        ("EXPERIMENT", Align::Left),
    ];
    let (records, mut table) = (records(), Table::new(columns));
    for summary in vcc_lab::experiments() {
        let experiment = vcc_lab::load(&summary.id)?;
        let scheduled_s = experiment.scheduled_s(None);
        let time = Time::expected(took_s(&records, &summary), summary.backend, scheduled_s);
        let mut backends = experiment.backends();
        backends.sort_by_key(|backend| *backend != summary.backend);
        let backends: Vec<String> = backends.iter().map(ToString::to_string).collect();
        table.row([summary.id, time.to_string(), backends.join(", "), summary.title]);
    }
    output::say(&table.render());
    Ok(ExitCode::SUCCESS)
}

/// Those of the checkout that is the current directory, if it is one.
fn records() -> Folder {
    let folder = Path::new(RECORDS);
    if !folder.is_dir() {
        return Folder::default();
    }
    Folder::read(folder).unwrap_or_else(|error| {
        output::complain(&format!("times of recorded runs are left out: {error}"));
        Folder::default()
    })
}

/// Seconds that the recorded run took, which had the conditions of a run without options.
fn took_s(records: &Folder, summary: &Summary) -> Option<f64> {
    let records = records.records().into_iter().map(|(_, record)| record);
    let mut own = records.filter(|record| {
        record.experiment == summary.id
            && record.backend == summary.backend
            && record.stack == summary.stack
    });
    own.next()?.wall_s
}
