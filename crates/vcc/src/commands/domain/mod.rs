mod promises;
mod ruled;
mod serving;

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use vcc_command::output;
use vcc_command::signals::{Hangups, Signals};
use vcc_command::treatment::BufferTreatment;
use vcc_domain::{BufferSpec, Port};
use vcc_engine::{BufferPolicy, Mode, Params, sys};
use vcc_net::heap;
use vcc_port::{AttachOptions, Error};
use vcc_vhost::{Card, PolicyFile};
use vcc_view::serves_tap;

use promises::Promises;
use ruled::{Ruled, Terms, wants_ledger};
use serving::{Place, Serving};

/// Serve a guest's network card, with a buffer for what the guest sends
///
/// With --socket and --tap, this is the card of a virtual machine: the virtual machine monitor connects
/// to the socket by vhost-user, and the tap leads to the host's bridge. This process is the guest's
/// link: while it does not run, the guest has no link. When it runs again, the link is back, and
/// connections continue untranslated; those with unkept promises of the process are reset.
///
/// With --device, the guest keeps its card. Its TCP takes a detour through this process, and nothing else
/// changes: while the process does not run, the guest's traffic passes directly.
///
/// For most guests, `vcc attach` is the better choice: it needs no process besides the kernel.
#[derive(clap::Args)]
pub struct Arguments {
    /// Socket to which the virtual machine monitor connects
    #[arg(long, value_name = "PATH", requires = "tap", required_unless_present = "device")]
    socket: Option<PathBuf>,

    /// Tap toward the host's bridge; it must exist
    #[arg(long, value_name = "DEV", requires = "socket")]
    tap: Option<String>,

    /// Socket to which the virtual machine monitor connects the guest's virtio-serial port `org.vcc.flood`, on
    /// which `vcc-guest flood --channel` learns which connections this process holds
    #[arg(long, value_name = "PATH")]
    channel: Option<PathBuf>,

    /// Host side of the guest's existing device, instead of a socket and a tap: a virtual machine's tap, a
    /// container's veth
    #[arg(long, value_name = "DEV", conflicts_with_all = ["socket", "tap"])]
    device: Option<String>,

    /// Policy with the rules for this guest's connections, instead of all options below; one of its
    /// `[[ports]]` must name the socket, or the device with a `buffer`; SIGHUP and `vcc policy apply` read it
    /// again
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,

    /// Buffer for the guest's segments, in KiB [default: 4096]
    #[arg(long, value_name = "KIB", conflicts_with = "policy",
        value_parser = clap::value_parser!(u32).range(64..=1 << 20))]
    buffer_kib: Option<u32>,

    /// How the guest's connections share the buffer [default: fair]
    #[arg(long, conflicts_with = "policy", value_parser = buffer_policies())]
    buffer_policy: Option<BufferPolicy>,

    #[command(flatten)]
    treatment: BufferTreatment,
}

fn buffer_policies() -> impl TypedValueParser<Value = BufferPolicy> {
    PossibleValuesParser::new(BufferPolicy::ALL.iter().map(|policy| policy.name()))
        .map(|name| name.parse().expect("one of the names"))
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    heap::keep_free_memory();
    // A service manager may ask to read the policy again as soon as the process runs.
    let stop = Signals::block().context("cannot wait for signals")?;
    let hangups = Hangups::block();
    let place = place(arguments)?;
    let ruled = arguments.policy.as_ref().map(|file| Ruled::new(file, &place)).transpose()?;
    let terms = ruled.as_ref().map(Ruled::read).transpose()?;
    let (port, wants_ledger, how) = port(arguments, terms);
    // Its ledger is not to be taken for that of a process that ended.
    if serves_tap(place.device()) {
        return Err(Error::HeldByProcess { device: place.device().to_owned() }.into());
    }
    let mut serving = Serving::begin(&place, port)?;
    let card = serving.card();
    card.change(|port| port.require_ledger());
    let mut promises = Promises::for_device(place.device());
    promises.end_left(&card);
    if wants_ledger {
        promises.keep(&card);
    }
    let policy = ruled.map(|ruled| policy_file(ruled, &card, promises));
    card.answer_at(&vcc_view::status_socket(place.device()), policy.clone())?;
    for warning in arguments.treatment.warnings() {
        output::complain(&format!("warning: {warning}"));
    }
    output::say(&format!("serving {place}: {how}\n"));
    let reload = move || {
        loop {
            hangups.wait();
            match &policy {
                // It has printed its outcome.
                Some(policy) => drop((policy.reload)()),
                None => output::complain(
                    "no policy to reload: this process was started without --policy",
                ),
            }
        }
    };
    thread::Builder::new().name("reload".to_owned()).spawn(reload)?;
    serving.run(&stop)?;
    Ok(ExitCode::SUCCESS)
}

fn place(arguments: &Arguments) -> anyhow::Result<Place> {
    let Some(device) = &arguments.device else {
        let (socket, tap) = (arguments.socket.as_ref(), arguments.tap.clone());
        let socket = std::path::absolute(socket.expect("required without a device"))?;
        let channel = arguments.channel.clone();
        return Ok(Place::Card { socket, tap: tap.expect("required with a socket"), channel });
    };
    if arguments.channel.is_some() {
        bail!(
            "--channel needs a virtual machine whose card this process serves, which --device does not: leave \
             it out, or serve the guest's card with --socket and --tap instead of --device"
        );
    }
    let receive = u32::from(arguments.treatment.options().params.0.receive);
    if receive != sys::RECEIVE_GUEST {
        bail!(
            "--receive needs the guest's receive ring, which a process in front of a device does not see: \
             leave it out, or serve the guest's card with --socket and --tap instead of --device"
        );
    }
    Ok(Place::Device(device.clone()))
}

fn policy_file(ruled: Ruled, card: &Card, promises: Promises) -> PolicyFile {
    let path = ruled.path();
    let (card, promises) = (card.clone(), Mutex::new(promises));
    let reload = move || {
        // A reload by SIGHUP and another one do not mix.
        let mut promises = promises.lock().unwrap_or_else(PoisonError::into_inner);
        ruled.reload(&card, &mut promises)
    };
    PolicyFile { path, reload: Arc::new(reload) }
}

/// The port, whether it needs a ledger, and how it treats them in words.
fn port(arguments: &Arguments, terms: Option<Terms>) -> (Port, bool, String) {
    let Some(terms) = terms else {
        let AttachOptions { params, max_flows, .. } = arguments.treatment.options();
        let default = BufferSpec::default();
        let buffer = BufferSpec {
            size_bytes: arguments.buffer_kib.map_or(default.size_bytes, |kib| kib << 10),
            policy: arguments.buffer_policy.unwrap_or(default.policy),
        };
        let port = with_isn_hash(Port::with_buffer(params, max_flows as usize, buffer));
        return (port, wants_ledger(&params), how(&params));
    };
    let wants_ledger = terms.wants_ledger();
    let Terms { rules, buffer, max_flows, text } = terms;
    let mut port = with_isn_hash(Port::with_buffer(Params::default(), max_flows as usize, buffer));
    port.set_rules(rules);
    (port, wants_ledger, text)
}

/// Its keys are random, so no peer can guess the sequence numbers (RFC 6528, 3).
fn with_isn_hash(mut port: Port) -> Port {
    let keyed = RandomState::new();
    port.set_isn_hash(Arc::new(move |key| keyed.hash_one(key)));
    port
}

fn how(params: &Params) -> String {
    let underlay = params.underlay().expect("set by its name");
    match params.mode().expect("set by its name") {
        Mode::Enforce => underlay.to_string(),
        mode => format!("{underlay}, in {mode} mode"),
    }
}
