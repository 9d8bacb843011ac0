//! Kernel parameters of the guests, below /proc/sys/net.

use super::host::Family;

/// No neighbour discovery, no router solicitation: nothing on the wire but the experiment.
pub const QUIET_IPV6: &[(&str, &str)] =
    &[("ipv6/conf/all/disable_ipv6", "1"), ("ipv6/conf/default/disable_ipv6", "1")];
pub const BARE_IPV6: &[(&str, &str)] = &[
    ("ipv6/conf/default/addr_gen_mode", "1"),
    ("ipv6/conf/default/accept_ra", "0"),
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv6/conf/default/router_solicitations", "0"),
];

/// IPv6 parameters of a guest with a kernel of its own, whose device takes nothing from `default`.
pub fn bare_ipv6(family: Family, device: &str) -> Vec<(String, &'static str)> {
    let (parameters, of) = match family {
        Family::Ipv4 => (QUIET_IPV6, "all"),
        Family::Ipv6 => (BARE_IPV6, device),
    };
    let parameters = parameters.iter().filter(|(name, _)| name.contains("/default/"));
    parameters
        .map(|(name, value)| (name.replace("/default/", &format!("/{of}/")), *value))
        .collect()
}

/// TCP parameters of every experiment.
pub fn tcp(ecn: bool, sack: bool) -> [(&'static str, &'static str); 4] {
    let flag = |on: bool| if on { "1" } else { "0" };
    [
        ("ipv4/tcp_ecn", flag(ecn)),
        // RED drops SYNs, which are not ECT; a repeated SYN would then give ECN up.
        ("ipv4/tcp_ecn_fallback", "0"),
        ("ipv4/tcp_sack", flag(sack)),
        ("ipv4/tcp_no_metrics_save", "1"),
    ]
}
