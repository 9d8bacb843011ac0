use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::bail;
use vcc_command::output;
use vcc_port::{Emitter, Port};

use super::ports_of;
use crate::interrupt;

/// Send duplicate ACKs to guests without SACK, to spare them retransmission timeouts
///
/// For ports that were attached with --emit. Three duplicate ACKs make a guest retransmit that would
/// otherwise wait for its timeout; a window update shows it a window that grew without an ACK. Runs
/// until Ctrl-C, or until all of the ports are detached.
#[derive(clap::Args)]
pub struct Arguments {
    /// Ports to serve [default: those of this network namespace that were attached with --emit]
    #[arg(value_name = "DEV")]
    devices: Vec<String>,
}

/// Interval at which to check whether the port is still attached.
const LOOK: Duration = Duration::from_millis(500);

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut served = Vec::new();
    for port in ports_of(&arguments.devices, "its process sends by itself")? {
        if !arguments.devices.is_empty() || (port.is_here()? && port.emits()?) {
            served.push((port.emitter()?, port));
        }
    }
    if served.is_empty() {
        bail!(
            "no port in this network namespace was attached with --emit: run `vcc attach --emit DEV`"
        );
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
                        .inspect_err(|error| output::complain(&output::with_causes(error.as_ref())))
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
    let mut text = format!(
        "{}: {} duplicate ACKs, {} window updates",
        port.device(),
        emitted.duplicate_acks,
        emitted.window_updates
    );
    if emitted.outdated > 0 {
        text += &format!("; {} were no longer needed", emitted.outdated);
    }
    if emitted.unsent > 0 {
        text += &format!("; {} could not be sent", emitted.unsent);
    }
    output::say(&(text + "\n"));
    Ok(())
}
