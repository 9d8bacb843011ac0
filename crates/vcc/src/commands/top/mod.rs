mod draw;
mod history;
mod hosts;
mod keys;
mod model;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{Event, KeyEventKind};
use vcc_command::output;
use vcc_command::seconds;
use vcc_view::Sampler;

use super::selection::{FilterArguments, SortBy, sort_parser};
use super::swept;
use super::tenants::Tenants;
use crate::interrupt;
use crate::terminal::{self, Screen};
use model::Model;

/// Watch ports and connections on the whole terminal
///
/// Shows rates, windows and limits of all connections, and the history of one. The bottom line lists
/// keys; `?` explains all of them.
///
/// With --hosts, it shows a row for each of several hosts, and the busiest ports of all, as their daemons report
/// them over HTTP (`vcc run --listen ADDRESS`). Without a terminal or with --json, it asks them once; the exit
/// status is then 1 if one did not answer.
#[derive(clap::Args)]
pub struct Arguments {
    /// Ports to show [default: all]
    #[arg(value_name = "DEV")]
    devices: Vec<String>,

    /// The hosts in FILE, one a line, instead of this one: ADDRESS, ADDRESS:PORT, a name, or the path of a
    /// socket that leads to the daemon's port; `#` begins a comment
    #[arg(long, value_name = "FILE", conflicts_with_all = ["devices", "FilterArguments"], help_heading = "Several hosts")]
    hosts: Option<PathBuf>,

    /// Print JSON, once
    #[arg(long, requires = "hosts", help_heading = "Several hosts")]
    json: bool,

    /// How long a host may take to answer
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = seconds::up_to_a_minute, requires = "hosts", help_heading = "Several hosts")]
    timeout: Duration,

    /// How many of the busiest ports to show
    #[arg(
        long,
        value_name = "N",
        default_value = "10",
        requires = "hosts",
        help_heading = "Several hosts"
    )]
    busiest: usize,

    #[command(flatten)]
    filter: Box<FilterArguments>,

    /// Sort by this column at first: the largest number first, names from A to Z
    #[arg(long, value_name = "KEY", default_value = "rate", value_parser = sort_parser(), help_heading = "How they are shown")]
    sort: SortBy,

    /// Read every SECONDS
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds::up_to_a_minute, help_heading = "How they are shown")]
    interval: Duration,
}

const INSTEAD: &str = "`vcc flows --watch` prints the same, table after table";
/// The time until the first rates.
const FIRST: Duration = Duration::from_millis(300);

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(file) = &arguments.hosts {
        return hosts::run(&hosts::Options {
            file,
            json: arguments.json,
            interval: arguments.interval,
            timeout: arguments.timeout,
            busiest: arguments.busiest,
        });
    }
    let mut sampler = Sampler::new(&arguments.devices).with_cpus().with_costs();
    let mut tenants = Tenants::ask();
    let mut model = Model::new(arguments.filter.filter(), arguments.sort.sort());
    // Errors that prevent any output come before the screen is taken over.
    let mut first = sampler.snapshot()?;
    tenants.name(&mut first.flows);
    model.update(first);
    let mut screen = Screen::take(INSTEAD)?;
    let mut next = Instant::now() + FIRST.min(arguments.interval);
    let mut is_stale = true;
    while !interrupt::came() && !model.is_over() {
        if is_stale {
            screen.terminal.draw(|frame| draw::draw(&model, frame))?;
            is_stale = false;
        }
        let left = next.saturating_duration_since(Instant::now());
        let pause = sampler.pause(left);
        if let Some(event) = terminal::next_event(pause)? {
            match event {
                Event::Key(key) if key.kind != KeyEventKind::Release => model.press(key),
                _ => {}
            }
            is_stale = true;
        }
        if Instant::now() >= next {
            sample(&mut sampler, &mut tenants, &mut model);
            next = Instant::now() + arguments.interval;
            is_stale = true;
        } else if let Err(error) = sampler.keep_up() {
            model.set_note(Some(output::with_causes(&error)));
            is_stale = true;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Errors are shown, and may be temporary: a port may be detached and attached again.
fn sample(sampler: &mut Sampler, tenants: &mut Tenants, model: &mut Model) {
    if model.is_paused() {
        // Rates after the pause need reads during it.
        model.set_note(sampler.note().err().map(|error| output::with_causes(&error)));
        return;
    }
    match sampler.snapshot() {
        Ok(mut snapshot) => {
            tenants.name(&mut snapshot.flows);
            model.set_note(snapshot.gone.last().map(|device| swept(device)));
            model.update(snapshot);
        }
        Err(error) => model.set_note(Some(output::with_causes(&error))),
    }
}
