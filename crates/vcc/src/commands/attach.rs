use std::process::ExitCode;

use clap::builder::RangedU64ValueParser;
use vcc_engine::{GuestEcn, Mode, Underlay};
use vcc_port::{AttachOptions, Port};

use super::sweep;
use crate::{output, size};

/// Put vcc on the host side of guests' network devices
///
/// Connections that begin from now on are translated; those that exist pass untouched. The
/// attachment lives on when this command ends, until `vcc detach` or the end of the device. A
/// port that drains takes new connections again.
#[derive(clap::Args)]
pub struct Arguments {
    /// The host side of a guest's device: a VM's tap, a container's veth
    #[arg(required = true, value_name = "DEV")]
    devices: Vec<String>,

    /// The congestion control that the fabric shall see
    #[arg(long, value_name = "NAME", default_value_t)]
    underlay: Underlay,

    /// Compute everything, change nothing
    #[arg(long)]
    shadow: bool,

    /// Reduce windows at once instead of by RFC 6937
    #[arg(long)]
    no_prr: bool,

    /// Leave PSH as the guest sets it
    #[arg(long)]
    no_pace_push: bool,

    /// Show windows of up to SIZE bytes exactly (K, M, G: KiB, MiB, GiB) [default: 2M]
    #[arg(long, value_name = "SIZE", value_parser = window_max)]
    window_max: Option<u32>,

    /// Track up to N connections a port; those beyond pass untouched [default: 65536]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u32>::new().range(1..=1 << 24))]
    max_flows: Option<u32>,

    /// Answer marks also for guests that negotiate ECN themselves
    #[arg(long)]
    override_guest_ecn: bool,
}

impl Arguments {
    fn options(&self) -> AttachOptions {
        let default = AttachOptions::default();
        AttachOptions {
            underlay: self.underlay,
            mode: if self.shadow { Mode::Shadow } else { default.mode },
            guest_ecn: if self.override_guest_ecn { GuestEcn::Override } else { default.guest_ecn },
            prr: !self.no_prr,
            pace_push: !self.no_pace_push,
            window_max_bytes: self.window_max.unwrap_or(default.window_max_bytes),
            max_flows: self.max_flows.unwrap_or(default.max_flows),
            ..default
        }
    }
}

/// From what needs no scale to the most that a scale can express (RFC 7323, 2.3).
fn window_max(text: &str) -> Result<u32, String> {
    let bytes = size::parse(text)?;
    if (1 << 16..=1 << 30).contains(&bytes) {
        Ok(bytes)
    } else {
        Err("must be 64K to 1G".to_owned())
    }
}

/// All of the devices, or none: whatever is not pinned in the end goes with this function.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    sweep()?;
    let options = arguments.options();
    let mut devices = arguments.devices.clone();
    devices.sort();
    devices.dedup();
    let (mut fresh, mut draining) = (Vec::new(), Vec::new());
    for device in &devices {
        match Port::draining(device)? {
            Some(port) => draining.push(port),
            None => fresh.push(Port::attach(device, &options)?),
        }
    }
    Port::pin_all(&mut fresh)?;
    let how = if arguments.shadow { ", in shadow mode" } else { "" };
    for port in &fresh {
        output::say(&format!("attached to {}: {}{how}\n", port.device(), options.underlay));
    }
    for port in &draining {
        port.resume(&options)?;
        let device = port.device();
        output::say(&format!("{device} drains no more: {}{how}\n", options.underlay));
    }
    Ok(ExitCode::SUCCESS)
}
