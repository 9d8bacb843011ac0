//! The program inside a guest with a kernel of its own: it carries out its plan, reports, and
//! powers the guest off.
//!
//! Process 1 takes the path of the plan from the environment variable `plan`, where the kernel puts
//! an unknown `plan=` of its command line. Any other process takes the path as its only argument,
//! and neither mounts file systems nor powers off.

mod draining;
mod guest;
mod init;
mod network;
mod outgoing;
mod pings;
mod poll;
mod receiving;
mod serving;
mod timeline;

use std::any::Any;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};
use std::panic;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};
use vcc_traffic::plan::GuestPlan;
use vcc_traffic::report::Report;
use vcc_traffic::{Doing, Error, Result};

/// The environment variable with the path of the plan.
const PLAN: &str = "plan";

fn main() -> ExitCode {
    let is_init = std::process::id() == 1;
    let reports = match panic::catch_unwind(|| work(is_init)) {
        Ok(Ok(reports)) => reports,
        Ok(Err(error)) => failed(&error),
        Err(panic) => failed(&format!("a defect of vcc-agent: {}", words_of(panic.as_ref()))),
    };
    let printed = print(&reports);
    if let Err(error) = &printed {
        eprintln!("vcc-agent cannot print its report: {error}");
    }
    if is_init {
        let error = init::power_off();
        eprintln!("vcc-agent cannot power the guest off: {error}");
        return ExitCode::FAILURE;
    }
    let is_whole = matches!(reports.last(), Some(Report::Whole { .. }));
    if is_whole && printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn work(is_init: bool) -> Result<Vec<Report>> {
    let path = if is_init {
        init::mount_all()?;
        env::var_os(PLAN).ok_or("is named by no `plan=` on the kernel's command line")
    } else {
        env::args_os().nth(1).ok_or("is missing: its path is the only argument")
    };
    let plan = read(&path.map_err(|problem| Error::Plan(problem.into()))?)?;
    plan.check()?;
    network::set_up(&plan)?;
    let mut reports = guest::run(&plan)?;
    reports.push(Report::Whole { lines: reports.len() });
    Ok(reports)
}

fn read(path: &OsString) -> Result<GuestPlan> {
    let name = Path::new(path).display();
    let text = fs::read(path).doing(|| format!("read the plan {name}"))?;
    serde_json::from_slice(&text).map_err(|error| Error::Plan(format!("{name} is none: {error}")))
}

fn failed(problem: &impl Display) -> Vec<Report> {
    vec![Report::Error { problem: problem.to_string() }]
}

fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("it panicked without a message")
}

fn print(reports: &[Report]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for report in reports {
        writeln!(out, "{}", report.to_line()?)?;
    }
    out.flush()
}
