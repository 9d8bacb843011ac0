//! Kernel parameters of the guests, below /proc/sys/net.

use super::family::Family;
use serde::Deserialize;

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

/// What a guest's TCP does otherwise than Linux's. Left out is as it is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpSwitches {
    /// PVTCP, which the guest kernel in virtual time has.
    #[serde(default)]
    pub pvtcp: Option<bool>,
    /// F-RTO (RFC 5682).
    #[serde(default)]
    pub frto: Option<bool>,
    /// RFC 7323.
    #[serde(default)]
    pub timestamps: Option<bool>,
    /// RFC 2883.
    #[serde(default)]
    pub dsack: Option<bool>,
    /// TLP (RFC 8985).
    #[serde(default)]
    pub tail_loss_probes: Option<bool>,
    /// RFC 8985.
    #[serde(default)]
    pub rack: Option<bool>,
}

impl TcpSwitches {
    /// These, and of those that are left out, `others`.
    pub fn or(self, others: Self) -> Self {
        Self {
            pvtcp: self.pvtcp.or(others.pvtcp),
            frto: self.frto.or(others.frto),
            timestamps: self.timestamps.or(others.timestamps),
            dsack: self.dsack.or(others.dsack),
            tail_loss_probes: self.tail_loss_probes.or(others.tail_loss_probes),
            rack: self.rack.or(others.rack),
        }
    }

    pub fn parameters(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let switches = [
            (self.pvtcp, "ipv4/tcp_pvtcp", "1"),
            (self.frto, "ipv4/tcp_frto", "2"),
            (self.timestamps, "ipv4/tcp_timestamps", "1"),
            (self.dsack, "ipv4/tcp_dsack", "1"),
            (self.tail_loss_probes, "ipv4/tcp_early_retrans", "3"),
            (self.rack, "ipv4/tcp_recovery", "1"),
        ];
        switches.into_iter().filter_map(|(switch, name, on)| {
            let value = if switch? { on } else { "0" };
            Some((name, value))
        })
    }
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
