mod table;
mod wanted;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use vcc_engine::sys;
use vcc_port::{FlowId, Port, Trace};

use super::ports_of;
use crate::end::End;
use crate::{interrupt, output};
use table::Csv;
use wanted::Wanted;

/// Record what vcc infers of a connection, ACK by ACK
///
/// Prints comma-separated values: a line for each ACK that passes to the guest, with the state right
/// after it. Ends with the connection, with the port, by Ctrl-C, or when --count or --duration say
/// so. One recording a port at a time.
#[derive(clap::Args)]
pub struct Arguments {
    /// The connection: GUEST-PEER, or one end of it, each as `vcc flows` prints it; an address or
    /// :PORT will do where it is not ambiguous
    #[arg(required_unless_present = "device")]
    flow: Option<Wanted>,

    /// The peer's end, where FLOW is the guest's alone
    peer: Option<End>,

    /// The port; without FLOW, all of its connections are recorded
    #[arg(long, value_name = "DEV")]
    device: Option<String>,

    /// Write to FILE instead of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// End after N ACKs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// End after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = duration)]
    duration: Option<Duration>,
}

/// How often it is looked whether the connection has gone without an ACK to say so.
const LOOK: Duration = Duration::from_millis(500);

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let ports = ports_of(arguments.device.as_slice())?;
    let (port, flow) = choose(ports, arguments)?;
    let to: Box<dyn Write> = match &arguments.output {
        Some(path) => Box::new(
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?,
        ),
        None => Box::new(io::stdout()),
    };
    interrupt::listen()?;
    let mut trace = port.trace(flow)?;
    match record(&port, &mut trace, BufWriter::new(to), arguments) {
        // A reader that has gone (`| head`) is no failure.
        Err(e) if is_broken_pipe(&e) && arguments.output.is_none() => {}
        result => {
            let lines = result?;
            if let Some(path) = &arguments.output {
                output::say(&format!("{lines} ACKs recorded: {}\n", path.display()));
            }
        }
    }
    match trace.lost()? {
        0 => {}
        lost => output::complain(&format!(
            "{lost} ACKs came faster than they could be recorded, and are missing"
        )),
    }
    Ok(ExitCode::SUCCESS)
}

/// The port, and its one connection that is meant; None: all of them.
fn choose(ports: Vec<Port>, arguments: &Arguments) -> anyhow::Result<(Port, Option<FlowId>)> {
    let Some(wanted) = wanted(arguments)? else {
        let port = ports.into_iter().next().context("vcc is attached nowhere")?;
        return Ok((port, None));
    };
    let mut found = Vec::new();
    for port in &ports {
        let flows = port.flows()?.into_iter();
        let alive = flows.filter(|flow| u32::from(flow.state.stage) != sys::STAGE_CLOSED);
        let ids = alive.map(|flow| flow.id()).filter(|id| wanted.is(id));
        found.extend(ids.map(|id| (port.device().to_owned(), id)));
    }
    found.sort();
    match &found[..] {
        [(device, id)] => {
            let port = ports.into_iter().find(|port| port.device() == device && knows(port, id));
            Ok((port.context("the connection has ended")?, Some(*id)))
        }
        [] => bail!("no connection {wanted} at a port (`vcc flows` lists those there are)"),
        several => bail!("{wanted} is not one connection but {}", list(several)),
    }
}

fn wanted(arguments: &Arguments) -> anyhow::Result<Option<Wanted>> {
    Ok(match (arguments.flow, arguments.peer) {
        (Some(Wanted::End(guest)), Some(peer)) => Some(Wanted::Both(guest, peer)),
        (Some(both), Some(peer)) => bail!("{both} names both ends already: what is {peer}?"),
        (wanted, _) => wanted,
    })
}

/// Two devices in different network namespaces may have the same name.
fn knows(port: &Port, id: &FlowId) -> bool {
    port.flow(id).is_ok_and(|flow| flow.is_some())
}

fn list(found: &[(String, FlowId)]) -> String {
    const MAX: usize = 4;
    let told: Vec<String> =
        found.iter().take(MAX).map(|(device, id)| format!("{id} at {device}")).collect();
    match found.len().saturating_sub(MAX) {
        0 => told.join(", "),
        more => format!("{}, and {more} more", told.join(", ")),
    }
}

/// Until something ends it; returns how many ACKs were written.
fn record(
    port: &Port,
    trace: &mut Trace,
    to: impl Write,
    arguments: &Arguments,
) -> anyhow::Result<u64> {
    const FAILED: &str = "cannot write what was recorded";
    let until = arguments.duration.and_then(|duration| Instant::now().checked_add(duration));
    let mut csv = Csv::begin(to, port.params()?).context(FAILED)?;
    while !interrupt::came() && arguments.count.is_none_or(|count| csv.lines < count) {
        let left = until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()));
        let mut event = trace.next(Duration::ZERO)?;
        if event.is_none() {
            // Whoever reads along has all that there is before the next is waited for.
            csv.flush().context(FAILED)?;
            event = trace.next(left.min(LOOK))?;
        }
        let over = match &event {
            Some(event) => {
                csv.line(event).context(FAILED)?;
                is_closed(&event.flow.state) && trace.flow().is_some()
            }
            None => has_ended(port, trace)?,
        };
        if over || left.is_zero() {
            break;
        }
    }
    csv.flush().context(FAILED)?;
    Ok(csv.lines)
}

fn has_ended(port: &Port, trace: &Trace) -> anyhow::Result<bool> {
    if !port.is_attached()? {
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
        .ok_or_else(|| "must be a number of seconds, more than 0".to_owned())
}
