use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::bail;
use vcc_command::output;
use vcc_command::table::{Align, Table};
use vcc_daemon::{ClientError, RecordsStatus, Status};
use vcc_policy::RuleCount;
use vcc_port::coexistence::Severity;
use vcc_view::units;

use super::policy::daemon;

/// Show the state of the daemon: its policy, its ports and problems
#[derive(clap::Args)]
pub struct Arguments {
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let status = ask()?;
    if arguments.json {
        output::say_json(&status)?;
    } else {
        output::say(&report(&status));
    }
    Ok(ExitCode::SUCCESS)
}

/// The daemon's.
pub fn ask() -> anyhow::Result<Status> {
    match daemon().status() {
        Err(error @ ClientError::NoDaemon { .. }) if vcc_port::are_wheels_still()? => {
            bail!("{error}; until then, ended connections of this host's ports are not removed")
        }
        status => Ok(status?),
    }
}

pub fn report(status: &Status) -> String {
    let Status { version, pid, policy, epoch, ports, problems, .. } = status;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let up = age(now.saturating_sub(status.since_unix_s));
    let mut text = format!("vcc {version} is up for {up}, process {pid}\n");
    // A file's name, or that of the cluster's policies and which of them.
    let until = if policy.starts_with(&status.config) { "" } else { " until the next reload" };
    let rules = RuleCount { rules: status.rules - 1, has_default: status.has_default };
    text += &format!("policy: {policy}{until}, epoch {epoch}, {rules}\n");
    if let Some(bytes) = status.tables_bytes {
        let bytes = units::BYTES.write(bytes as f64);
        text += &format!("tables: {bytes} of the kernel's memory\n");
    }
    if let Some(RecordsStatus { target, written, lost, failure }) = &status.records {
        let lost = if *lost > 0 { format!(", {lost} lost") } else { String::new() };
        let failure = failure.as_ref().map(|why| format!("; none can be written now: {why}"));
        text += &format!("records: {written} in {target}{lost}{}\n", failure.unwrap_or_default());
    }
    if status.rejected_requests > 0 {
        text += &format!("rejected requests: {}\n", status.rejected_requests);
    }
    for problem in problems {
        text += &format!("problem: {problem}\n");
    }
    for warning in &status.warnings {
        text += &format!("warning: {warning}\n");
    }
    for port in ports {
        // Those that are problems are report above.
        let warnings = port.neighbours.iter().filter(|it| it.severity == Severity::Warning);
        warnings
            .for_each(|warning| text += &format!("warning: {}\n", warning.describe(&port.device)));
    }
    if ports.is_empty() {
        return text + "no device here is a port: no [[ports]] of the policy matches one\n";
    }
    let mut table = Table::new([
        ("PORT", Align::Left),
        ("INDEX", Align::Right),
        ("TENANT", Align::Left),
        ("GUEST", Align::Left),
        ("STATE", Align::Left),
        ("UNKNOWN", Align::Left),
    ]);
    for port in ports {
        let [tenant, guest] =
            [&port.tenant, &port.guest].map(|name| name.clone().unwrap_or_else(|| "-".to_owned()));
        let state = if port.draining { "draining" } else { "attached" };
        let unknown = match port.unknown_dropped_in_s {
            None => "pass".to_owned(),
            Some(0) => "dropped".to_owned(),
            Some(seconds) => format!("dropped in {}", age(seconds.into())),
        };
        let index = port.index.to_string();
        table.row([port.device.clone(), index, tenant, guest, state.to_owned(), unknown]);
    }
    text + &table.render()
}

fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}
