//! Kernel parameters of the namespaces.

use super::{Family, HostSpec, Netns};
use crate::error::Result;
use std::path::Path;

/// No neighbour discovery, no router solicitation: nothing on the wire but the experiment.
const QUIET_IPV6: &[(&str, &str)] =
    &[("ipv6/conf/all/disable_ipv6", "1"), ("ipv6/conf/default/disable_ipv6", "1")];
const BARE_IPV6: &[(&str, &str)] = &[
    ("ipv6/conf/default/addr_gen_mode", "1"),
    ("ipv6/conf/default/accept_ra", "0"),
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv6/conf/default/router_solicitations", "0"),
];

/// Of a guest with a kernel and a device of its own: neither learns of the default what it is to do.
pub(crate) fn bare_ipv6(family: Family, device: &str) -> Vec<(String, &'static str)> {
    let (parameters, of) = match family {
        Family::Ipv4 => (QUIET_IPV6, "all"),
        Family::Ipv6 => (BARE_IPV6, device),
    };
    let parameters = parameters.iter().filter(|(name, _)| name.contains("/default/"));
    parameters
        .map(|(name, value)| (name.replace("/default/", &format!("/{of}/")), *value))
        .collect()
}

/// Those that this kernel has: it may be built without IPv6.
fn existing<'a>(parameters: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let exists = |name: &str| Path::new("/proc/sys/net").join(name).exists();
    parameters.iter().copied().filter(|(name, _)| exists(name)).collect()
}

/// Of a namespace that is to have no IPv6.
pub(crate) fn quiet_ipv6(namespace: &Netns) -> Result<()> {
    namespace.set(&existing(QUIET_IPV6))
}

/// Of the hypervisor, whose own TCP a proxy uses; as the guests', but with ECN.
pub(crate) fn set_proxy(hypervisor: &Netns, sack: bool, congestion_control: &str) -> Result<()> {
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
    namespace.set(&tcp(ecn, sack))
}

/// Of TCP in every experiment, below /proc/sys/net.
pub(crate) fn tcp(ecn: bool, sack: bool) -> [(&'static str, &'static str); 4] {
    let flag = |on: bool| if on { "1" } else { "0" };
    [
        ("ipv4/tcp_ecn", flag(ecn)),
        // RED drops SYNs, which are not ECT; a repeated SYN would then give ECN up.
        ("ipv4/tcp_ecn_fallback", "0"),
        ("ipv4/tcp_sack", flag(sack)),
        ("ipv4/tcp_no_metrics_save", "1"),
    ]
}
