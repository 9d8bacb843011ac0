use std::process::ExitCode;

use anyhow::bail;
use vcc_command::output;
use vcc_command::treatment::{DeviceTreatment, options_of_port};
use vcc_daemon::{ClientError, OF_CLUSTER, Status};
use vcc_policy::Order;
use vcc_port::Port;
use vcc_port::coexistence::Around;

use super::{policy, sweep};

/// Put vcc on the host side of guests' network devices
///
/// Connections that begin from now on are translated; existing ones pass untouched. The attachment
/// outlives this command, until `vcc detach` or the end of the device. A draining port takes new
/// connections again.
#[derive(clap::Args)]
pub struct Arguments {
    /// The host side of a guest's device: a VM's tap, a container's veth
    #[arg(required = true, value_name = "DEV")]
    devices: Vec<String>,

    /// The devices belong to the guest of DEV, to which vcc is attached: they join its port, with its
    /// treatment, connections and counters
    #[arg(long, value_name = "DEV", conflicts_with_all = options_of_port())]
    same_guest_as: Option<String>,

    #[command(flatten)]
    treatment: DeviceTreatment,
}

/// Attaches to all of the devices, or to none.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(tap) = arguments.devices.iter().find(|device| vcc_view::serves_tap(device)) {
        bail!(
            "`vcc domain` serves {tap}, and its connections would be translated twice: choose their \
             underlay by its options or policy, or end it first"
        );
    }
    sweep()?;
    let options = arguments.treatment.options();
    let mut devices = arguments.devices.clone();
    devices.sort();
    devices.dedup();
    devices.iter().try_for_each(|device| require_not_under_policy(device))?;
    if let Some(first) = &arguments.same_guest_as {
        return join(first, &devices, options.order);
    }
    let (mut others, mut draining) = (Vec::new(), Vec::new());
    for device in &devices {
        match Port::draining(device)? {
            Some(port) => draining.push(port),
            None => others.push(device.as_str()),
        }
    }
    let fresh = match &others[..] {
        [] => Vec::new(),
        others => Port::attach_pinned(others, &options)?,
    };
    for warning in arguments.treatment.warnings() {
        output::complain(&format!("warning: {warning}"));
    }
    let underlay = options.params.underlay().expect("set by its name");
    let how = format!("{underlay}, in {} mode", arguments.treatment.mode());
    for port in &fresh {
        output::say(&format!("attached to {}: {how}\n", port.device()));
    }
    for port in &draining {
        port.resume(&options)?;
        output::say(&format!("{} is no longer draining: {how}\n", port.device()));
    }
    warn(devices.iter().map(String::as_str));
    if options.params.0.emit != 0 {
        output::say("duplicate ACKs and window updates are sent while `vcc emit` runs\n");
    }
    Ok(ExitCode::SUCCESS)
}

/// A port under a policy is the daemon's: detaching it would release its connections, and the daemon
/// attaches to it again.
pub(super) fn require_not_under_policy(device: &str) -> anyhow::Result<()> {
    let is_under_policy = match Port::open(device) {
        Ok(port) => port.index()?.is_some(),
        // Attaching reports why.
        Err(_) => false,
    };
    if !is_under_policy {
        return Ok(());
    }
    match policy::daemon().status() {
        Ok(status) if status.config == OF_CLUSTER => bail!(
            "the daemon keeps `{device}` under the cluster's policies: change them there (`kubectl get \
             vccpolicies` lists them)"
        ),
        Ok(Status { config, .. }) => bail!(
            "the daemon keeps `{device}` under {config}: edit [[ports]] and [[rules]] there, then `vcc policy \
             apply`"
        ),
        Err(ClientError::NoDaemon { .. }) => bail!(
            "`{device}` is under a policy of `vcc run`, which stays in force without the daemon: start \
             `vcc run` with a changed policy, or run `vcc detach --wait {device}` first, which \
             waits until no connection depends on vcc"
        ),
        Err(error) => {
            bail!("`{device}` is under a policy, but the daemon did not name it: {error}")
        }
    }
}

fn join(first: &str, devices: &[String], order: Order) -> anyhow::Result<ExitCode> {
    let port = Port::open(first)?;
    if port.index()?.is_some() {
        bail!(
            "`{first}` is under a policy, so the policy must join the devices: set the same `guest` in \
             the [[ports]] of both"
        );
    }
    let devices: Vec<&str> = devices.iter().map(String::as_str).collect();
    for joined in port.join(&devices, order)? {
        output::say(&format!("attached to {}: one port with {first}\n", joined.device()));
    }
    warn(devices.into_iter());
    Ok(ExitCode::SUCCESS)
}

/// Warns of what hides segments at these devices from vcc, falsifies its figures, or keeps it from pacing.
fn warn<'a>(devices: impl Iterator<Item = &'a str>) {
    for text in warnings(devices).unwrap_or_else(|error| vec![error.to_string()]) {
        output::complain(&format!("warning: {text}"));
    }
}

fn warnings<'a>(devices: impl Iterator<Item = &'a str>) -> vcc_port::Result<Vec<String>> {
    let around = Around::read()?;
    let mut warnings = Vec::new();
    for device in devices {
        let findings = around.findings(device)?;
        let harmful = findings.iter().filter(|finding| finding.is_harmful());
        warnings.extend(harmful.map(|finding| finding.describe(device)));
    }
    Ok(warnings)
}
