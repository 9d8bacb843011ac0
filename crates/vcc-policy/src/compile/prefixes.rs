//! The peers' networks, for a longest-prefix match.

use ipnet::IpNet;

use super::sets::{self, Sets, insert, unite};
use super::{RuleSet, sets::EMPTY};
use crate::network::{IPV4, Network};
use crate::rule::Rule;

/// A network of either family in IPv6's bits: IPv4 is ::ffff:a.b.c.d.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    pub addr: [u8; 16],
    /// Length of the prefix in the 128-bit address.
    pub length: u8,
    /// Index into the sets.
    pub set: u32,
}

/// The networks, and the set for addresses in none.
pub(super) fn of_rules(rules: &[Rule], sets: &mut Sets) -> (Vec<Prefix>, u32) {
    let anywhere = sets::of_rules(rules, |rule| rule.conditions.peers.is_none());
    let (mut ipv4, mut ipv6) = (Vec::new(), Vec::new());
    for (place, rule) in rules.iter().enumerate() {
        for net in rule.conditions.peers.iter().flatten() {
            let family = if matches!(net, IpNet::V4(_)) { &mut ipv4 } else { &mut ipv6 };
            family.push((Network::new(net), place));
        }
    }
    let mut nested = family(ipv6, &anywhere);
    // A network of IPv6 around all of IPv4 would otherwise be found for its addresses.
    let root = nested.iter().any(|(network, _)| network.contains(IPV4));
    let mut prefixes = family(ipv4, &anywhere);
    if root && prefixes.first().is_none_or(|(network, _)| *network != IPV4) {
        prefixes.push((IPV4, anywhere));
    }
    prefixes.append(&mut nested);
    prefixes.sort_unstable_by_key(|(network, _)| *network);
    let prefixes = prefixes
        .into_iter()
        .map(|(network, set)| Prefix {
            addr: network.addr.to_be_bytes(),
            length: network.length,
            set: sets.index_of(set),
        })
        .collect();
    (prefixes, sets.index_of(anywhere))
}

/// One family's networks, each with the rules of all networks around it. A network whose set is
/// that of the one around it is left out.
fn family(mut places: Vec<(Network, usize)>, anywhere: &RuleSet) -> Vec<(Network, RuleSet)> {
    places.sort_unstable();
    let mut found: Vec<(Network, RuleSet)> = Vec::new();
    // The networks around the current one, the shortest prefix at the bottom.
    let mut around: Vec<(Network, RuleSet)> = Vec::new();
    for of_one in places.chunk_by(|a, b| a.0 == b.0) {
        let network = of_one[0].0;
        while around.last().is_some_and(|(outer, _)| !outer.contains(network)) {
            around.pop();
        }
        let outer = around.last().map_or(anywhere, |(_, set)| set);
        let mut set = EMPTY;
        unite(&mut set, outer);
        for (_, place) in of_one {
            insert(&mut set, *place);
        }
        if set != *outer {
            found.push((network, set));
            around.push((network, set));
        }
    }
    found
}
