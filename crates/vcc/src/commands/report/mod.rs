//! What the records of connections show.

mod files;
mod groups;
mod page;
mod since;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::ValueEnum;
use vcc_command::output;
use vcc_daemon::Record;

use groups::Groups;
use since::Since;

/// Sum up the records of ended connections
///
/// Reads what `vcc run --records FILE` has written, and the files that it has renamed: FILE.1 and further
/// ones. Shows a row for each tenant, or for each group by --by, the one with the most bytes first, and the
/// connections that lost most.
#[derive(clap::Args)]
pub struct Arguments {
    /// Files of records; - is the standard input
    #[arg(value_name = "FILE", default_value = "/var/log/vcc/connections.json")]
    files: Vec<PathBuf>,

    /// Connections that ended since then: 90s, 30m, 24h or 7d before now, or a time like 2026-11-29 or
    /// 2026-11-29T13:00, in UTC
    #[arg(long, value_name = "TIME")]
    since: Option<Since>,

    /// Connections that ended before then
    #[arg(long, value_name = "TIME")]
    until: Option<Since>,

    /// A row for each of these
    #[arg(long, value_enum, default_value_t = By::Tenant)]
    by: By,

    /// Show the N connections that lost most
    #[arg(long, value_name = "N", default_value_t = 5)]
    worst: usize,

    /// Also write a page with plots of each row to FILE
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print the sums as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    Tenant,
    Rule,
    Port,
    Underlay,
    /// The guest's address
    Guest,
    /// The peer's address
    Peer,
}

impl By {
    fn name(self, record: &Record) -> &str {
        let name = match self {
            Self::Tenant => record.tenant.as_deref(),
            Self::Rule => record.rule.as_deref(),
            Self::Port => Some(&*record.port),
            Self::Underlay => record.underlay.as_deref(),
            Self::Guest => Some(address(&record.guest)),
            Self::Peer => Some(address(&record.peer)),
        };
        name.unwrap_or("-")
    }
}

/// Of an end, which is ADDRESS:PORT.
fn address(end: &str) -> &str {
    end.rsplit_once(':').map_or(end, |(address, _)| address)
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let since_s = arguments.since.map_or(f64::NEG_INFINITY, Since::unix_s);
    let until_s = arguments.until.map_or(f64::INFINITY, Since::unix_s);
    let mut groups = Groups::new(arguments.worst);
    let unread = files::read(&arguments.files, &mut |record| {
        if (since_s..until_s).contains(&record.ended_unix_s) {
            groups.add(arguments.by.name(&record).to_owned(), record);
        }
    })?;
    if unread > 0 {
        output::complain(&format!("left out {unread} lines that are not records"));
    }
    if groups.is_empty() {
        bail!(
            "no records, or none of that time: `vcc run --records FILE` writes a record of each connection \
             that ends"
        );
    }
    let report = groups.report();
    if let Some(path) = &arguments.html {
        let failed = || format!("cannot write {}", path.display());
        fs::write(path, page::html(&report)).with_context(failed)?;
    }
    match arguments.json {
        true => output::say_json(&report)?,
        false => output::say(&report.text()),
    }
    Ok(ExitCode::SUCCESS)
}
