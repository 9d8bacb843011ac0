use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use vcc_daemon::RuntimeDir;
use vcc_domain::{BufferSpec, Port};
use vcc_engine::{Act, BufferPolicy, Mode, Params};
use vcc_vhost::{Event, FileLedger, Server, Signals, Tap};

use super::treatment::BufferTreatment;
use crate::output;

/// Serve a virtual machine's network card, with a buffer for what the guest sends
///
/// The virtual machine monitor connects to the socket by vhost-user, and the tap leads to the host's
/// bridge. This process is the guest's link: while it does not run, the guest has none. When it
/// returns, so does the link, and connections continue. For most guests, `vcc attach` on a tap is
/// the better choice: it needs no process beside the kernel.
#[derive(clap::Args)]
pub struct Arguments {
    /// Socket to which the virtual machine monitor connects
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,

    /// Tap toward the host's bridge; it has to exist
    #[arg(long, value_name = "DEV")]
    tap: String,

    /// Buffer for what is held of the guest, in KiB
    #[arg(long, value_name = "KIB", default_value_t = 4096,
        value_parser = clap::value_parser!(u32).range(64..=1 << 20))]
    buffer_kib: u32,

    /// How the guest's connections share the buffer
    #[arg(long, default_value = "fair", value_parser = buffer_policies())]
    buffer_policy: BufferPolicy,

    #[command(flatten)]
    treatment: BufferTreatment,
}

fn buffer_policies() -> impl TypedValueParser<Value = BufferPolicy> {
    PossibleValuesParser::new(BufferPolicy::ALL.iter().map(|policy| policy.name()))
        .map(|name| name.parse().expect("one of the names"))
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let options = arguments.treatment.options();
    let params: Params = options.params;
    let buffer =
        BufferSpec { size_bytes: arguments.buffer_kib << 10, policy: arguments.buffer_policy };
    let stop = Signals::block().context("cannot wait for signals")?;
    let tap = Tap::open(&arguments.tap)?;
    let port = Port::with_buffer(params, options.max_flows as usize, buffer);
    let tell = |event: Event| output::complain(&event.to_string());
    let mut server = Server::new(&arguments.socket, port, Box::new(tap), Box::new(tell))?;
    keep_promises(arguments, &mut server)?;
    server.card().tell_at(&vcc_view::status_socket(&arguments.tap))?;
    if let Some(warning) = arguments.treatment.warning() {
        output::complain(&format!("warning: {warning}"));
    }
    let socket = arguments.socket.display();
    output::say(&format!("serving {socket} on {}: {}\n", arguments.tap, how(&params)));
    server.run(&stop)?;
    Ok(ExitCode::SUCCESS)
}

/// Ends what a process before this one has promised, and writes down what this one will.
fn keep_promises(arguments: &Arguments, server: &mut Server) -> anyhow::Result<()> {
    let directory = RuntimeDir::of_environment().path().join("ledgers");
    let path = directory.join(&arguments.tap);
    let cannot = |what: &str| format!("cannot {what} {}", path.display());
    let left = FileLedger::left(&path).with_context(|| cannot("read the promises in"))?;
    let splits = arguments.treatment.options().params.0.act == Act::Split.number();
    if !splits && left.is_empty() {
        let _ = fs::remove_file(&path);
        return Ok(());
    }
    server.end_promises(left);
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o750).create(&directory).with_context(|| cannot("make"))?;
    let slots = server.card().change(|port| port.ledger_slots());
    let ledger = FileLedger::create(&path, slots);
    let ledger = Arc::new(ledger.with_context(|| cannot("keep promises in"))?);
    server.card().change(|port| port.keep_ledger(ledger));
    Ok(())
}

fn how(params: &Params) -> String {
    let underlay = params.underlay().expect("set by its name");
    match params.mode().expect("set by its name") {
        Mode::Enforce => underlay.to_string(),
        mode => format!("{underlay}, in {mode} mode"),
    }
}
