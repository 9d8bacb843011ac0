use std::io;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use vcc_command::{CANNOT_RUN_OPERATOR, operator};
use vcc_results::report::bench::{Figure, Measurements};

use super::Origin;
use super::devices::{Devices, ip};
use super::figures::{figure, run_isolated};
use crate::measure::BusyHost;

/// Segments that are timed together, while a policy is applied.
const PROBE_SEGMENTS: u32 = 100;
/// All connections are forgotten within it, once they have ended.
const FORGOTTEN_WITHIN: Duration = Duration::from_secs(120);

/// The time to read a million connections, judge them by new rules, and forget them
///
/// In namespaces of their own, at ports under a policy: `vcc flows --json` with and without a
/// filter, a policy applied while segments pass, and all connections reset at once.
#[derive(clap::Args)]
pub struct Arguments {
    /// Connections; a million takes 1.5 GB of memory
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,

    /// Also write the figures to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub fn run(arguments: &Arguments, origin: &Origin) -> anyhow::Result<ExitCode> {
    let measure = || measure(arguments.connections);
    run_isolated(origin, arguments.json.as_deref(), Measurements::Host, measure)
}

fn measure(connections: u32) -> anyhow::Result<Vec<Figure>> {
    let names: Vec<String> =
        (0..BusyHost::devices(connections)).map(|number| format!("port{number}")).collect();
    let mut devices = Devices::begin()?;
    names.iter().try_for_each(|name| devices.create(name))?;
    devices.finish()?;
    names.iter().try_for_each(|name| ip(&format!("link set {name} up")))?;
    let host = BusyHost::create(&names, connections)?;
    let mut figures = reading()?;
    figures.extend(ruling(&host)?);
    figures.extend(forgetting(&host)?);
    let (longest_us, too_long) = host.held()?;
    figures.extend([
        figure("held", "the longest time that timers held a CPU", f64::from(longest_us), "us"),
        figure("held_too_long", "how often it was over 1 ms", f64::from(too_long), "times"),
    ]);
    Ok(figures)
}

fn reading() -> anyhow::Result<Vec<Figure>> {
    let (all_s, bytes) = read(&["flows", "--json"])?;
    let (some_s, _) = read(&["flows", "--json", "--guest", ":1024"])?;
    Ok(vec![
        figure("flows", "vcc flows --json", all_s, "s"),
        figure("flows_bytes", "what it printed", bytes as f64 / 1e6, "MB"),
        figure("flows_filtered", "vcc flows --json --guest :1024", some_s, "s"),
    ])
}

/// The seconds and the output's size of a command of vcc, which runs inside, too.
fn read(arguments: &[&str]) -> anyhow::Result<(f64, u64)> {
    let begin = Instant::now();
    let mut vcc =
        operator().args(arguments).stdout(Stdio::piped()).spawn().context(CANNOT_RUN_OPERATOR)?;
    let mut printed = vcc.stdout.take().context("vcc has no standard output")?;
    let bytes = io::copy(&mut printed, &mut io::sink())?;
    if !vcc.wait()?.success() {
        bail!("vcc {} failed", arguments.join(" "));
    }
    Ok((begin.elapsed().as_secs_f64(), bytes))
}

fn ruling(host: &BusyHost) -> anyhow::Result<Vec<Figure>> {
    let over = AtomicBool::new(false);
    let (applied_s, probes) = thread::scope(|scope| {
        let probing = scope.spawn(|| {
            let mut probes = Vec::new();
            while !over.load(Ordering::Relaxed) {
                probes.push(seconds(|| host.send(PROBE_SEGMENTS))?);
            }
            anyhow::Ok(probes)
        });
        let applied_s = seconds(|| host.apply());
        over.store(true, Ordering::Relaxed);
        (applied_s, probing.join())
    });
    let mut probes = probes.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    probes.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| probes[(probes.len() as f64 * share) as usize] * 1e6;
    let segments = format!("{PROBE_SEGMENTS} segments meanwhile, median");
    Ok(vec![
        figure("apply", "a policy applied to all connections", applied_s?, "s"),
        figure("segments", &segments, at(0.5), "us"),
        figure("segments_p99", "99 in 100 of them", at(0.99), "us"),
    ])
}

fn forgetting(host: &BusyHost) -> anyhow::Result<Vec<Figure>> {
    host.reset()?;
    let begin = Instant::now();
    while host.connections()? > 0 {
        if begin.elapsed() > FORGOTTEN_WITHIN {
            bail!("{} connections are left two minutes after their end", host.connections()?);
        }
        thread::sleep(Duration::from_millis(10));
    }
    let took_s = begin.elapsed().as_secs_f64();
    Ok(vec![figure(
        "forgotten",
        "all forgotten after a RST of each (idle_closed 1 s)",
        took_s,
        "s",
    )])
}

fn seconds(work: impl FnOnce() -> vcc_port::Result<()>) -> anyhow::Result<f64> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed().as_secs_f64())
}
