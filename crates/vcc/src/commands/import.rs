use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use vcc_command::output;
use vcc_engine::export::{self, Connection, LONGEST_BYTES};
use vcc_port::{Arrived, Flow};

use super::port_of;

/// Take over the connections of a guest that comes from another host
///
/// Reads a file that `vcc export` wrote there. Attach vcc to the guest's device here first, and import
/// before the guest runs. Each connection is treated by this host's policy from then on. If the port
/// already has newer state of a connection, it keeps that, so you may import a file exported before the
/// move and then one exported during it.
#[derive(clap::Args)]
pub struct Arguments {
    /// The host side of the guest's device
    #[arg(value_name = "DEV")]
    device: String,

    /// The file to read [default: stdin]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let flow =
        |Connection { guest, peer, vlan, inside, state }| Flow { guest, peer, vlan, inside, state };
    let read = export::read(&text(arguments)?)?;
    let flows: Vec<Flow> = read.into_iter().map(flow).collect();
    let guests: BTreeSet<IpAddr> = flows.iter().map(|flow| flow.guest.ip()).collect();
    let port = port_of(&arguments.device, "it cannot take connections over")?;
    let looks_nowhere = port.inside()?.is_empty();
    // They would never see a segment.
    let (hidden, flows): (Vec<Flow>, Vec<Flow>) =
        flows.into_iter().partition(|flow| flow.inside && looks_nowhere);
    let mut counted: BTreeMap<Arrived, usize> = BTreeMap::new();
    for arrived in port.take_over(&flows)? {
        *counted.entry(arrived).or_default() += 1;
    }
    let mut summary = summary(&counted);
    if !hidden.is_empty() {
        summary += &format!(
            "; {} inside tunnels, into which the port does not look: set `inside` in its [[ports]], \
             then import again",
            hidden.len()
        );
    }
    output::say(&format!("{}: {}{summary}\n", port.device(), whose(&guests)));
    let is_lost = |arrived: &Arrived| {
        matches!(arrived, Arrived::NoRoom | Arrived::Draining | Arrived::Impossible)
    };
    Ok(if !hidden.is_empty() || counted.keys().any(is_lost) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// A guest with other addresses here has lost all of its connections, which only its operator can
/// notice.
fn whose(guests: &BTreeSet<IpAddr>) -> String {
    const NAMED: usize = 3;
    let addresses: Vec<String> = guests.iter().take(NAMED).map(ToString::to_string).collect();
    match guests.len() {
        0 => String::new(),
        1..=NAMED => format!("of {}: ", addresses.join(", ")),
        more => format!("of {} and {} more: ", addresses.join(", "), more - NAMED),
    }
}

/// Bytes that are not UTF-8 cannot be replaced unnoticed: the checksum detects it.
fn text(arguments: &Arguments) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let (name, from): (String, Box<dyn Read>) = match &arguments.file {
        Some(file) => {
            let name = file.display().to_string();
            let opened = File::open(file).with_context(|| format!("cannot read {name}"))?;
            (name, Box::new(opened))
        }
        None => ("stdin".into(), Box::new(io::stdin())),
    };
    let read = from.take(LONGEST_BYTES + 1).read_to_end(&mut bytes);
    let length = read.with_context(|| format!("cannot read {name}"))?;
    if length as u64 > LONGEST_BYTES {
        bail!(
            "{name} is longer than {} MiB, the limit of an export: is it a file of `vcc export`?",
            LONGEST_BYTES >> 20
        );
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn summary(counted: &BTreeMap<Arrived, usize>) -> String {
    let of = |arrived| counted.get(&arrived).copied().unwrap_or(0);
    let mut summary = match of(Arrived::Translated) {
        1 => "1 connection taken over".to_owned(),
        number => format!("{number} connections taken over"),
    };
    for (arrived, why) in [
        (Arrived::Known, "already known"),
        (Arrived::LeftAlone, "left alone by the policy"),
        (Arrived::NoRoom, "without room: `vcc ports` shows how full the port and the host are"),
        (Arrived::Draining, "refused because the port is draining: `vcc attach` it again"),
        (Arrived::Impossible, "inconsistent: export again"),
    ] {
        match of(arrived) {
            0 => {}
            number => summary += &format!("; {number} {why}"),
        }
    }
    summary
}
