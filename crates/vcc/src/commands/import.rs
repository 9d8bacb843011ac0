use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use vcc_command::output;
use vcc_export::{Connection, LONGEST_BYTES};
use vcc_port::{Arrived, Flow};

use super::port_of;

/// Take over the connections of a guest that comes from another host
///
/// What `vcc export` has written there. The device is the one that the guest has here; vcc is
/// attached to it, and the guest has not gone on yet. Each connection is treated by this host's
/// policy from then on. Those of which the port knows more stay as they are, so the file of an
/// export before the move may be followed by one of an export during it.
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
    let read = vcc_export::read(&text(arguments)?)?;
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
    let mut told = told(&counted);
    if !hidden.is_empty() {
        told += &format!(
            "; {} inside tunnels, into which the port does not look: `inside` of its [[ports]], then \
             import again",
            hidden.len()
        );
    }
    output::say(&format!("{}: {}{told}\n", port.device(), whose(&guests)));
    let is_lost = |arrived: &Arrived| {
        matches!(arrived, Arrived::NoRoom | Arrived::Draining | Arrived::Impossible)
    };
    Ok(if !hidden.is_empty() || counted.keys().any(is_lost) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// A guest that has other addresses here sees none of its connections again, and nobody but its operator
/// knows.
fn whose(guests: &BTreeSet<IpAddr>) -> String {
    const NAMED: usize = 3;
    let addresses: Vec<String> = guests.iter().take(NAMED).map(ToString::to_string).collect();
    match guests.len() {
        0 => String::new(),
        1..=NAMED => format!("of {}: ", addresses.join(", ")),
        more => format!("of {} and {} more: ", addresses.join(", "), more - NAMED),
    }
}

/// Bytes that are no text do not become others that are: the checksum tells.
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
        bail!("{name} is longer than {} MiB: no host has so many connections", LONGEST_BYTES >> 20);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn told(counted: &BTreeMap<Arrived, usize>) -> String {
    let of = |arrived| counted.get(&arrived).copied().unwrap_or(0);
    let mut told = match of(Arrived::Translated) {
        1 => "1 connection taken over".to_owned(),
        number => format!("{number} connections taken over"),
    };
    for (arrived, why) in [
        (Arrived::Known, "known already"),
        (Arrived::LeftAlone, "left alone by the policy"),
        (Arrived::NoRoom, "without room: `vcc ports` tells how full the port and the host are"),
        (Arrived::Draining, "refused because the port is draining: `vcc attach` it again"),
        (Arrived::Impossible, "as no connection can be: export again"),
    ] {
        match of(arrived) {
            0 => {}
            number => told += &format!("; {number} {why}"),
        }
    }
    told
}
