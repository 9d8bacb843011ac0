//! Configures the guest's network as planned.

mod device;
mod netlink;
mod offload;

use device::Devices;
use netlink::{Index, Windows};
use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use vcc_traffic::plan::{GuestPlan, Sysctl};
use vcc_traffic::{Doing, Result};

const LOOPBACK: &str = "lo";

/// Parameters come first, because some take effect when a device goes up.
///
/// # Errors
/// A device or a parameter could not be configured.
pub fn set_up(plan: &GuestPlan) -> Result<()> {
    plan.sysctls.iter().try_for_each(write)?;
    let network = &plan.network;
    let device = network.device.as_str();
    let devices = Devices::open()?;
    devices.bring_up(LOOPBACK)?;
    if !network.tso {
        offload::turn_off(&devices, device)?;
    }
    let index = Index::find(device)?;
    index.add_address(network.address, network.prefix_bits)?;
    devices.bring_up(device)?;
    network.neighbours.iter().try_for_each(|neighbour| index.add_neighbour(neighbour))?;
    let mut routes: BTreeMap<IpAddr, Windows> = BTreeMap::new();
    for neighbour in &network.neighbours {
        routes.entry(neighbour.address).or_default().initial_segs = network.initial_window_segs;
    }
    for flow in &plan.sends {
        let windows = routes.entry(flow.to.ip()).or_default();
        windows.clamp_segs = flow.cwnd_clamp_segs.or(windows.clamp_segs);
    }
    routes.retain(|_, windows| *windows != Windows::default());
    routes.into_iter().try_for_each(|(to, windows)| index.add_route(to, windows))
}

fn write(sysctl: &Sysctl) -> Result<()> {
    let path = format!("/proc/sys/{}", sysctl.path);
    fs::write(&path, &sysctl.value).doing(|| format!("write '{}' to {path}", sysctl.value))
}
