use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use vcc_command::output;
use vcc_engine::sys;
use vcc_port::{Flow, FlowId, Port};

use super::ports_of;

/// Detach vcc from devices without harming their connections
///
/// vcc shows guests windows at a scale of its own. Without vcc, the guest reads its peer's windows
/// at the wrong scale, and the connection becomes very slow. So a port is drained first: it takes no
/// new connections, and is detached when no connection depends on vcc any more. If vcc negotiated ECN
/// for a connection, its peer keeps sending data that the fabric may mark, and nobody echoes these
/// marks until the connection ends; draining does not wait for that.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub struct Arguments {
    /// The devices to detach from
    #[arg(value_name = "DEV", group = "which")]
    devices: Vec<String>,

    /// Detach from all devices, including those of other network namespaces
    #[arg(long, group = "which")]
    all: bool,

    /// Detach at once, even while connections depend on vcc
    #[arg(long, conflicts_with = "wait")]
    now: bool,

    /// Wait until the connections that depend on vcc have ended
    #[arg(long)]
    wait: bool,

    /// The longest time to wait, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "wait")]
    timeout: u64,
}

const POLL: Duration = Duration::from_millis(200);

/// Connections that a message names; `vcc flows` has the others.
const NAMED: usize = 3;

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut ports = ports_of(&arguments.devices, "end its process")?;
    if ports.is_empty() {
        output::say("vcc is attached nowhere\n");
    }
    if arguments.now {
        for port in ports {
            detach(port)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    require_whole_ports(&ports)?;
    let deadline = Instant::now() + Duration::from_secs(arguments.timeout);
    loop {
        let draining = remove_idle(ports)?;
        if draining.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        if arguments.wait && Instant::now() < deadline {
            thread::sleep(POLL);
            ports = draining.into_iter().map(|draining| draining.port).collect();
            continue;
        }
        let text: Vec<String> = draining.iter().map(Draining::text).collect();
        let text = text.join("; ");
        if !arguments.wait {
            output::say(&format!(
                "{text}. New connections are not translated; run this again when these have ended, \
                 or with --now\n"
            ));
            return Ok(ExitCode::SUCCESS);
        }
        bail!(
            "after {} s, {text}. Wait longer (--timeout), or detach with --now, which makes them slow",
            arguments.timeout
        );
    }
}

/// A port drains as a whole, because which of its connections pass which device is unknown.
fn require_whole_ports(ports: &[Port]) -> anyhow::Result<()> {
    let is_named = |other: &String| ports.iter().any(|port| port.device() == other);
    for port in ports {
        let (device, others) = (port.device(), port.others().join(" "));
        if !port.others().iter().all(is_named) {
            bail!(
                "`{device}` is one port with {others}, and a port drains with all of its devices: \
                 `vcc detach {device} {others}`, or `vcc detach --now {device}` to detach from it alone"
            );
        }
    }
    Ok(())
}

struct Draining {
    port: Port,
    connections: usize,
}

impl Draining {
    fn text(&self) -> String {
        let device = self.port.device();
        let what = match self.connections {
            1 => "1 connection still depends on vcc".to_owned(),
            n => format!("{n} connections still depend on vcc"),
        };
        format!("{device} is draining: {what}{}", self.names())
    }

    /// Of the first few connections; some may have ended since they were counted.
    fn names(&self) -> String {
        let flows = self.port.flows().unwrap_or_default();
        let needing = flows.iter().filter(|flow| flow.depends_on_translation());
        let mut ids: Vec<FlowId> = needing.map(Flow::id).collect();
        ids.sort_by_key(|id| (id.guest, id.peer));
        let names: Vec<String> = ids.iter().take(NAMED).map(FlowId::to_string).collect();
        match ids.len() {
            0 => String::new(),
            n if n > NAMED => {
                format!(" ({}, and others: `vcc flows {}`)", names.join(", "), self.port.device())
            }
            _ => format!(" ({})", names.join(", ")),
        }
    }
}

/// Drains all ports, and detaches those that no connection depends on; returns the others.
fn remove_idle(ports: Vec<Port>) -> anyhow::Result<Vec<Draining>> {
    let mut draining = Vec::new();
    for port in ports {
        match port.drain()? {
            0 => {
                detach(port)?;
            }
            connections => draining.push(Draining { port, connections }),
        }
    }
    Ok(draining)
}

fn detach(port: Port) -> anyhow::Result<()> {
    let device = port.device().to_owned();
    // As of now: those before may have been detached a moment ago.
    if let Some(kept) = Port::open(&device).ok().filter(|port| !port.others().is_empty()) {
        let others = kept.others().join(" and ");
        port.detach()?;
        output::say(&format!(
            "detached from {device}; the port keeps its connections at {others}, but segments that pass \
             {device} are no longer translated\n"
        ));
        return Ok(());
    }
    // Flows of another version of vcc cannot be counted, but its port can be detached.
    let flows = port.flows().unwrap_or_default();
    port.detach()?;
    output::say(&format!("detached from {device}{}\n", harm(&flows)));
    Ok(())
}

/// What happens to connections without vcc, in words.
fn harm(flows: &[Flow]) -> String {
    let mut text = String::new();
    let mut report = |count: usize, what: &str| {
        if count > 0 {
            text += &format!("; {count} connection(s) {what} until they end");
        }
    };
    let slow = flows.iter().filter(|flow| flow.depends_on_translation());
    report(slow.count(), "now read windows at the wrong scale and will be slow");
    let unanswered = flows.iter().filter(|flow| sends_ect_to_guest(flow));
    report(unanswered.count(), "receive data whose marks nobody echoes to the peer any more");
    text
}

/// Has vcc negotiated ECN with the peer for a guest that did not ask for it?
fn sends_ect_to_guest(Flow { state, .. }: &Flow) -> bool {
    u32::from(state.stage) == sys::STAGE_ESTABLISHED
        && state.has(sys::FLOW_ECN_FABRIC)
        && !state.has(sys::FLOW_ECN_GUEST)
}
