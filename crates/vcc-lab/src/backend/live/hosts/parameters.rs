//! Sets the kernel parameters of namespaces.

use super::Netns;
use crate::base::error::Result;
use crate::scenario::{BARE_IPV6, Family, HostSpec, QUIET_IPV6, tcp_parameters};
use std::path::Path;

/// The parameters that this kernel has: it may be built without IPv6.
fn existing<'a>(parameters: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let exists = |name: &str| Path::new("/proc/sys/net").join(name).exists();
    parameters.iter().copied().filter(|(name, _)| exists(name)).collect()
}

/// Turns IPv6 off in a namespace.
pub fn quiet_ipv6(namespace: &Netns) -> Result<()> {
    namespace.set(&existing(QUIET_IPV6))
}

/// Sets the hypervisor's TCP for a proxy: the guests' parameters, with ECN.
pub fn set_proxy(hypervisor: &Netns, sack: bool, congestion_control: &str) -> Result<()> {
    hypervisor.set(&[("ipv4/tcp_congestion_control", congestion_control)])?;
    set_tcp(hypervisor, true, sack)
}

pub(super) fn set_guest(guest: &Netns, family: Family, spec: &HostSpec) -> Result<()> {
    set_tcp(guest, spec.ecn, spec.sack)?;
    match family {
        Family::Ipv4 => quiet_ipv6(guest),
        Family::Ipv6 => guest.set(BARE_IPV6),
    }
}

fn set_tcp(namespace: &Netns, ecn: bool, sack: bool) -> Result<()> {
    namespace.set(&tcp_parameters(ecn, sack))
}
