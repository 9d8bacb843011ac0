mod live;
pub mod plot;
pub mod sequence;
pub mod series;
mod table;
mod wanted;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use vcc_command::output;
use vcc_engine::{Limit, Params, sys};
use vcc_port::{FlowId, TraceEvent};
use vcc_view::{End, Recording, Source, limit};

use super::sources_of;
use crate::interrupt;
use series::Series;
use table::Csv;
use wanted::Wanted;

/// Record the inferred state of a connection, ACK by ACK
///
/// Prints comma-separated values: a line per ACK that passes to the guest, with the state right after
/// it; --plot draws them, --live shows them as they come. It ends with the connection, with the port,
/// by Ctrl-C, or by --count or --duration. A port has one recording at a time.
#[derive(clap::Args)]
#[command(after_long_help = table::help())]
pub struct Arguments {
    /// The connection: GUEST-PEER, or one end of it, as `vcc flows` prints them; an address or :PORT
    /// is enough if only one connection has it
    #[arg(required_unless_present = "device")]
    flow: Option<Wanted>,

    /// The peer's end, if FLOW is the guest's end alone
    peer: Option<End>,

    /// The port; without FLOW, all of its connections are recorded
    #[arg(long, value_name = "DEV")]
    device: Option<String>,

    /// Write to FILE instead of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Draw windows, flight, marks, reductions and round-trip times to FILE, as SVG
    #[arg(long, value_name = "FILE", requires = "flow", conflicts_with = "live")]
    plot: Option<PathBuf>,

    /// Show the last SECONDS on the terminal, and what limits the connection
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "10", value_parser = span, requires = "flow", conflicts_with_all = ["output", "count"])]
    live: Option<Duration>,

    /// End after N ACKs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// End after SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = duration)]
    duration: Option<Duration>,
}

/// The interval at which the end of the connection is noticed without an ACK.
const LOOK: Duration = Duration::from_millis(500);

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let ports = sources_of(arguments.device.as_slice())?;
    let (port, flow) = choose(ports, arguments)?;
    if let (Some(span), Some(id)) = (arguments.live, flow) {
        let mut trace = port.record(flow)?;
        let ended = live::run(&port, &mut trace, id, span, until(arguments))?;
        output::say(&ended);
        return Ok(ExitCode::SUCCESS);
    }
    let mut sinks = Sinks::open(arguments)?;
    interrupt::listen()?;
    let mut trace = port.record(flow)?;
    match record(&port, &mut trace, &mut sinks, arguments) {
        // A closed pipe (`| head`) is no failure.
        Err(e) if is_broken_pipe(&e) && arguments.output.is_none() => {}
        result => {
            result?;
            if let Some(path) = &arguments.output {
                output::say(&format!("{} ACKs recorded: {}\n", sinks.acks, path.display()));
            }
        }
    }
    if let (Some(path), Some(series)) = (&arguments.plot, &sinks.series) {
        let title = flow.map_or(String::new(), |id| format!("{id} at {}", port.device()));
        let svg = plot::svg(&title, &sinks.limited, series, None);
        fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))?;
        output::say(&format!("{} ACKs drawn: {}\n", sinks.acks, path.display()));
    }
    match trace.lost()? {
        0 => {}
        lost => output::complain(&format!(
            "{lost} ACKs are missing from the recording: they came faster than they could be read"
        )),
    }
    Ok(ExitCode::SUCCESS)
}

fn until(arguments: &Arguments) -> Option<Instant> {
    arguments.duration.and_then(|duration| Instant::now().checked_add(duration))
}

/// Where a recording goes.
struct Sinks {
    to: Option<Box<dyn Write>>,
    csv: Option<Csv<BufWriter<Box<dyn Write>>>>,
    series: Option<Series>,
    params: Option<Params>,
    /// What limited the connection after the last ACK.
    limited: String,
    acks: u64,
}

impl Sinks {
    /// Files are created before the recording begins, so that errors come first.
    fn open(arguments: &Arguments) -> anyhow::Result<Self> {
        let create = |path: &PathBuf| {
            File::create(path).with_context(|| format!("cannot write {}", path.display()))
        };
        arguments.plot.as_ref().map(create).transpose()?;
        let to: Option<Box<dyn Write>> = match (&arguments.output, &arguments.plot) {
            (Some(path), _) => Some(Box::new(create(path)?)),
            (None, Some(_)) => None,
            (None, None) => Some(Box::new(io::stdout())),
        };
        let series = arguments.plot.is_some().then(Series::complete);
        let limited = "an unknown limit: no ACK was recorded".to_owned();
        Ok(Self { to, csv: None, series, params: None, limited, acks: 0 })
    }

    /// Called when the recording has begun.
    fn begin(&mut self, params: Params) -> io::Result<()> {
        self.params = Some(params);
        if let Some(to) = self.to.take() {
            self.csv = Some(Csv::begin(BufWriter::new(to), params)?);
        }
        Ok(())
    }

    fn note(&mut self, event: &TraceEvent) -> io::Result<()> {
        self.acks += 1;
        if let (Some(series), Some(params)) = (&mut self.series, &self.params) {
            series.note(event);
            let limited = event.flow.state.limited_by(params, None, event.at_us);
            // A closed connection has no limit: keep the one before its end.
            if limited != Limit::Closed {
                self.limited = limit::text(limited);
            }
        }
        self.csv.as_mut().map_or(Ok(()), |csv| csv.line(event))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.csv.as_mut().map_or(Ok(()), Csv::flush)
    }
}

/// The port and the one connection that the arguments name; None: all connections.
fn choose(ports: Vec<Source>, arguments: &Arguments) -> anyhow::Result<(Source, Option<FlowId>)> {
    let Some(wanted) = wanted(arguments)? else {
        let port = ports.into_iter().next().context("vcc is attached nowhere")?;
        return Ok((port, None));
    };
    let mut found = Vec::new();
    // A guest's devices have one table: its connections are named once, unless a device is asked for.
    let is_asked_for = |port: &&Source| arguments.device.is_some() || !port.is_shown_elsewhere();
    for port in ports.iter().filter(is_asked_for) {
        let flows = port.flows()?.into_iter();
        let alive = flows.filter(|flow| u32::from(flow.state.stage) != sys::STAGE_CLOSED);
        let ids = alive.map(|flow| flow.id()).filter(|id| wanted.matches(id));
        found.extend(ids.map(|id| (port.device().to_owned(), id)));
    }
    found.sort();
    match &found[..] {
        [(device, id)] => {
            let port = ports.into_iter().find(|port| port.device() == device && knows(port, id));
            Ok((port.context("the connection has ended")?, Some(*id)))
        }
        [] => bail!("no connection {wanted} at a port (`vcc flows` lists all)"),
        several => bail!("{wanted} matches several connections: {}", list(several)),
    }
}

fn wanted(arguments: &Arguments) -> anyhow::Result<Option<Wanted>> {
    Ok(match (arguments.flow, arguments.peer) {
        (Some(Wanted::End(guest)), Some(peer)) => Some(Wanted::Both(guest, peer)),
        (Some(both), Some(peer)) => bail!("{both} names both ends already: remove {peer}"),
        (wanted, _) => wanted,
    })
}

/// Two devices in different network namespaces may have the same name.
fn knows(port: &Source, id: &FlowId) -> bool {
    port.flow(id).is_ok_and(|flow| flow.is_some())
}

fn list(found: &[(String, FlowId)]) -> String {
    const MAX: usize = 4;
    let ends: Vec<String> =
        found.iter().take(MAX).map(|(device, id)| format!("{id} at {device}")).collect();
    match found.len().saturating_sub(MAX) {
        0 => ends.join(", "),
        more => format!("{}, and {more} more", ends.join(", ")),
    }
}

/// The parameters of the connection; those of the port for all connections.
fn treatment(port: &Source, flow: Option<FlowId>) -> anyhow::Result<Params> {
    let params = port.params()?;
    let Some(id) = flow else { return Ok(params) };
    let Some(flow) = port.flow(&id)? else { return Ok(params) };
    Ok(port.rules()?.rule_of(&flow.state).map_or(params, |rule| *rule.params))
}

/// Until something ends it.
fn record(
    port: &Source,
    trace: &mut Recording,
    sinks: &mut Sinks,
    arguments: &Arguments,
) -> anyhow::Result<()> {
    const FAILED: &str = "cannot write the recording";
    let until = until(arguments);
    sinks.begin(treatment(port, trace.flow())?).context(FAILED)?;
    while !interrupt::came() && arguments.count.is_none_or(|count| sinks.acks < count) {
        let left = until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()));
        let mut event = trace.next(Duration::ZERO)?;
        if event.is_none() {
            // Flushed before waiting: a reader of the output has all ACKs so far.
            sinks.flush().context(FAILED)?;
            event = trace.next(left.min(LOOK))?;
        }
        let over = match &event {
            Some(event) => {
                sinks.note(event).context(FAILED)?;
                is_closed(&event.flow.state) && trace.flow().is_some()
            }
            None => has_ended(port, trace)?,
        };
        if over || left.is_zero() {
            break;
        }
    }
    sinks.flush().context(FAILED)?;
    Ok(())
}

fn has_ended(port: &Source, trace: &Recording) -> anyhow::Result<bool> {
    if trace.has_ended() || !port.is_attached()? {
        return Ok(true);
    }
    let Some(id) = trace.flow() else { return Ok(false) };
    Ok(port.flow(&id)?.is_none_or(|flow| is_closed(&flow.state)))
}

fn is_closed(state: &sys::vcc_flow) -> bool {
    u32::from(state.stage) == sys::STAGE_CLOSED
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn duration(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "must be a number of seconds above 0".to_owned())
}

fn span(text: &str) -> Result<Duration, String> {
    duration(text)
        .ok()
        .filter(|span| (1..=600).contains(&span.as_secs()))
        .ok_or_else(|| "must be a number of seconds from 1 to 600".to_owned())
}
