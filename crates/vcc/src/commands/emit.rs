use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::bail;
use vcc_port::{Emitter, Port};

use super::ports_of;
use crate::{interrupt, output};

/// Send guests without SACK the duplicate ACKs that spare them their timeouts
///
/// For ports that were attached with --emit: where a guest waits for its timeout, three duplicate
/// ACKs make it send again, and where its window grew without an ACK to say so, a window update
/// tells it. Runs until Ctrl-C, or until vcc is attached to none of the ports any more.
#[derive(clap::Args)]
pub struct Arguments {
    /// Ports to serve [default: those of this network namespace that were attached with --emit]
    #[arg(value_name = "DEV")]
    devices: Vec<String>,
}

/// How often it is looked whether the port is still there.
const LOOK: Duration = Duration::from_millis(500);

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut served = Vec::new();
    for port in ports_of(&arguments.devices)? {
        if !arguments.devices.is_empty() || (port.is_here()? && port.emits()?) {
            served.push((port.emitter()?, port));
        }
    }
    if served.is_empty() {
        bail!("no port here was attached with --emit: there is nothing to send");
    }
    interrupt::listen()?;
    let devices: Vec<&str> = served.iter().map(|(_, port)| port.device()).collect();
    output::say(&format!("sending to the guests at {}\n", devices.join(", ")));
    let results = thread::scope(|scope| {
        let threads: Vec<_> = served
            .into_iter()
            .map(|(emitter, port)| {
                scope.spawn(move || {
                    serve(emitter, port)
                        .inspect_err(|error| output::complain(&format!("{error:#}")))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
    });
    for result in results {
        match result {
            Ok(result) => result?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn serve(mut emitter: Emitter, port: Port) -> anyhow::Result<()> {
    while !interrupt::came() && port.is_attached()? {
        emitter.serve(LOOK)?;
    }
    let emitted = emitter.emitted();
    let mut told = format!(
        "{}: {} duplicate ACKs, {} window updates",
        port.device(),
        emitted.duplicate_acks,
        emitted.window_updates
    );
    if emitted.outdated > 0 {
        told += &format!("; {} were not needed any more", emitted.outdated);
    }
    if emitted.unsent > 0 {
        told += &format!("; {} could not be sent", emitted.unsent);
    }
    output::say(&(told + "\n"));
    Ok(())
}
