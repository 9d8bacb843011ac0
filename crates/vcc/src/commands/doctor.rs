use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use vcc_command::output;
use vcc_command::seconds;
use vcc_port::coexistence::{self, Around, Finding, Severity};
use vcc_port::doctor::{self, Check, Need};
use vcc_port::{Error, Port, SharedPolicy};

/// Check what this kernel and process provide, or list the other programs at a device
///
/// The command fails if attaching would not work. Missing requirements of the lab alone are listed, but
/// are no error.
///
/// With --device, the command lists the programs, queues and switches at the device, the position of vcc
/// among them, and whether vcc sees the packets. It fails if something hides segments from vcc.
#[derive(clap::Args)]
pub struct Arguments {
    /// Inspect this device, whether or not vcc is attached to it
    #[arg(long, value_name = "DEV")]
    device: Option<String>,

    /// Compare the packets of the device with those that reach vcc for this time
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds::up_to_a_minute, requires = "device")]
    seconds: Duration,

    /// Print the checks as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.device {
        Some(device) => look_at(device, arguments),
        None => look_at_host(arguments),
    }
}

fn look_at_host(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let checks = doctor::checks();
    if arguments.json {
        output::say_json(&checks)?;
    } else {
        output::say(&report(&checks));
    }
    Ok(code(can_attach(&checks)))
}

/// Attaching works without the lab's requirements.
fn can_attach(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.ok || check.need != Need::Attach)
}

const PAGE: &str = "docs/enforcement.md, Unknown connections";

#[derive(Serialize)]
struct DeviceReport<'a> {
    device: &'a str,
    /// The seconds until data of unknown connections is dropped; 0: it is dropped, none: it passes.
    unknown_dropped_in_s: Option<u32>,
    findings: Vec<Finding>,
}

/// None without a port.
fn unknown_dropped_in_s(device: &str) -> vcc_port::Result<Option<u32>> {
    match Port::open(device) {
        Ok(port) => port.unknown_dropped_in_s(SharedPolicy::find()?.as_ref()),
        Err(Error::NotAttached { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn look_at(device: &str, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let findings = coexistence::findings(device, Some(arguments.seconds))?;
    // Without root, the rest of the report is still worth having.
    let unknown_dropped_in_s = unknown_dropped_in_s(device).unwrap_or_else(|error| {
        output::complain(&format!("cannot read the port of {device}: {error}"));
        None
    });
    let harmless = findings.iter().all(|finding| finding.severity < Severity::Problem);
    if arguments.json {
        output::say_json(&DeviceReport { device, unknown_dropped_in_s, findings })?;
    } else {
        output::say(&report_of(device, &findings, unknown_dropped_in_s));
    }
    Ok(code(harmless))
}

/// About the device of a port, without watching its packets.
pub fn report_of_port(around: &Around, device: &str) -> anyhow::Result<String> {
    Ok(report_of(device, &around.findings(device)?, unknown_dropped_in_s(device)?))
}

fn code(well: bool) -> ExitCode {
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report_of(device: &str, findings: &[Finding], unknown_dropped_in_s: Option<u32>) -> String {
    let mut text = format!("On {device}:\n");
    for Finding { kind, severity, found, meaning, remedy } in findings {
        let severity = match severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Problem => "PROBLEM",
        };
        text += &format!("  {kind:<15} {severity:<7}  {found}\n");
        text += &format!("  {:<15} {:<7}  {meaning}\n", "", "");
        if let Some(remedy) = remedy {
            text += &format!("  {:<15} {:<7}  -> {remedy}\n", "", "");
        }
    }
    let count = |wanted| findings.iter().filter(|finding| finding.severity == wanted).count();
    text += &match (count(Severity::Problem), count(Severity::Warning)) {
        (0, 0) => "Nothing is in the way.\n".to_owned(),
        (problems, warnings) => format!("Problems: {problems}, warnings: {warnings}.\n"),
    };
    let unknown = "data of connections that the port does not know";
    match unknown_dropped_in_s {
        None => {}
        Some(0) => text += &format!("Dropped, as a rule polices: {unknown}.\n"),
        Some(seconds) => {
            text += &format!("Dropped in {seconds} s, as a rule polices: {unknown} ({PAGE}).\n");
        }
    }
    text
}

pub fn report(checks: &[Check]) -> String {
    let mut text = String::new();
    for (need, title) in [(Need::Attach, "To attach to ports"), (Need::Lab, "For the lab")] {
        text += &format!("{title}:\n");
        for check in checks.iter().filter(|check| check.need == need) {
            let verdict = if check.ok { "ok" } else { "MISSING" };
            text += &format!("  {:<15} {verdict:<7}  {}\n", check.name, check.found);
            if let Some(remedy) = &check.remedy {
                text += &format!("  {:<15} {:<7}  -> {remedy}\n", "", "");
            }
        }
    }
    let missing = |need| checks.iter().filter(|check| check.need == need && !check.ok).count();
    text += &match (missing(Need::Attach), missing(Need::Lab)) {
        (0, 0) => "Nothing is missing.\n".to_owned(),
        (0, n) => format!("vcc can attach; {n} missing, which only the lab needs.\n"),
        (n, _) => format!("vcc cannot attach: {n} missing.\n"),
    };
    text
}
