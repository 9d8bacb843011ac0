//! The tunnels whose inner connections a port translates.

use std::fmt;

use vcc_engine::sys;

/// A set of kinds of tunnels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tunnels(u32);

/// A kind of tunnel, by its name in policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelKind {
    pub name: &'static str,
    bit: u32,
    /// The datapath finds it by these. Empty: it is not in UDP.
    pub udp_ports: &'static [u16],
}

const VXLAN_PORTS: &[u16] = &[sys::VXLAN_PORT as u16, sys::VXLAN_LINUX_PORT as u16];
const GENEVE_PORTS: &[u16] = &[sys::GENEVE_PORT as u16];

impl TunnelKind {
    pub const ALL: [Self; 3] = [
        Self { name: "vxlan", bit: sys::INSIDE_VXLAN, udp_ports: VXLAN_PORTS },
        Self { name: "geneve", bit: sys::INSIDE_GENEVE, udp_ports: GENEVE_PORTS },
        Self { name: "gre", bit: sys::INSIDE_GRE, udp_ports: &[] },
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name == name)
    }
}

impl Tunnels {
    pub const NONE: Self = Self(0);

    /// The kinds by their numbers, as the datapath has them; others are ignored.
    pub fn from_bits(bits: u32) -> Self {
        TunnelKind::ALL.into_iter().filter(|kind| kind.bit & bits != 0).collect()
    }

    pub fn bits(self) -> u32 {
        self.0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn has(self, kind: TunnelKind) -> bool {
        kind.bit & self.0 != 0
    }

    fn kinds(self) -> impl Iterator<Item = TunnelKind> {
        TunnelKind::ALL.into_iter().filter(move |kind| self.has(*kind))
    }
}

impl FromIterator<TunnelKind> for Tunnels {
    fn from_iter<I: IntoIterator<Item = TunnelKind>>(kinds: I) -> Self {
        Self(kinds.into_iter().fold(0, |bits, kind| bits | kind.bit))
    }
}

/// The names with commas between them, as the command line takes them.
impl fmt::Display for Tunnels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.kinds().map(|kind| kind.name).collect();
        f.pad(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_each_kind_once() {
        let both = ["gre", "vxlan", "gre"].map(|name| TunnelKind::named(name).expect("a kind"));
        let both: Tunnels = both.into_iter().collect();
        assert_eq!(both.to_string(), "vxlan,gre");
        assert_eq!(Tunnels::from_bits(both.bits() | 1 << 31), both);
        assert!(Tunnels::NONE.is_empty() && !both.is_empty());
        assert_eq!(TunnelKind::named("ipip"), None);
    }
}
