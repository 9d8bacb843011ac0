//! Values that conditions admit, as ranges of numbers.

use ipnet::IpNet;

use crate::conditions::PortRange;
use crate::network::{IPV4, Network};
use crate::ranges::Ranges;

pub(crate) fn port_numbers(ranges: &Option<Vec<PortRange>>) -> Ranges {
    match ranges {
        None => Ranges::all(),
        Some(ranges) => Ranges::new(ranges.iter().map(|r| (r.first.into(), r.last.into()))),
    }
}

pub(crate) fn vlan_numbers(vlans: &Option<Vec<u16>>) -> Ranges {
    match vlans {
        None => Ranges::all(),
        Some(vlans) => Ranges::new(vlans.iter().map(|vlan| (u128::from(*vlan), (*vlan).into()))),
    }
}

/// In the order of their bits.
pub(crate) fn addresses(networks: &Option<Vec<IpNet>>) -> Ranges {
    let Some(networks) = networks else { return Ranges::all() };
    let (ipv4_first, ipv4_last) = IPV4.bounds();
    Ranges::new(networks.iter().flat_map(|net| {
        let (first, last) = Network::new(net).bounds();
        if matches!(net, IpNet::V6(_)) && first <= ipv4_first && ipv4_last <= last {
            // Either part may be empty, which a range cannot be.
            let before = (first < ipv4_first).then(|| (first, ipv4_first - 1));
            let after = (ipv4_last < last).then(|| (ipv4_last + 1, last));
            [before, after]
        } else {
            [Some((first, last)), None]
        }
        .into_iter()
        .flatten()
    }))
}
