//! Which rule a connection comes under, by the tables in the kernel: what `judge` of
//! `datapath/policy.h` finds, and why.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_engine::{Params, sys};
use vcc_policy::{Connection, Pool, Role, RuleSet, Treatment};

use super::edition::{self, rule_names};
use super::{SharedPolicy, pools};
use crate::plain::to_bytes;
use crate::{Error, Result};

/// The rule of a connection. The tables have no conditions: only whether a rule admits a value.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Its place in the policy's order.
    pub rule: usize,
    pub name: String,
    pub treatment: Treatment,
    pub pool: Option<Pool>,
    /// The rules before it, each with what it does not admit of the connection.
    pub misses: Vec<(String, Vec<Property>)>,
}

/// What rules look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Its tenant and its class.
    Port,
    Peer,
    GuestPort,
    PeerPort,
    Role,
    Vlan,
}

impl SharedPolicy {
    /// By the rules in force, for a connection of the port with this index; its tenant is the port's. None:
    /// no policy was applied yet.
    pub fn judge(&self, port: u32, connection: &Connection) -> Result<Option<Judgement>> {
        let head = self.head()?;
        if head.epoch == 0 {
            return Ok(None);
        }
        let edition = head.epoch % sys::EDITIONS;
        let names = rule_names(&self.maps, edition)?;
        let sets = self.sets(&head, edition, port, connection)?;
        let excludes = |set: &RuleSet, rule: usize| set[rule / 64] >> (rule % 64) & 1 == 0;
        let excluding = |rule: usize| -> Vec<Property> {
            sets.iter().filter(|(_, set)| excludes(set, rule)).map(|(it, _)| *it).collect()
        };
        let mut misses: Vec<Vec<Property>> = (0..names.len()).map(excluding).collect();
        let rule = misses.iter().position(Vec::is_empty).ok_or(Error::layout(READ))?;
        misses.truncate(rule);
        let at = edition * sys::RULES_MAX + rule as u32;
        let params: sys::vcc_params = edition::read(&self.maps.rules, at)?;
        let pool = (params.pool_bytes != 0).then(|| self.pool(&params)).transpose()?;
        let weight = params.pool_weight.max(1);
        let treatment =
            Treatment { params: Params(params), pool: pool.as_ref().map(|_| 0), weight };
        let name = names[rule].clone();
        Ok(Some(Judgement {
            rule,
            name,
            treatment,
            pool,
            misses: names.into_iter().zip(misses).collect(),
        }))
    }

    /// The rules that admit each property of the connection.
    fn sets(
        &self,
        head: &sys::vcc_policy,
        edition: u32,
        port: u32,
        connection: &Connection,
    ) -> Result<[(Property, RuleSet); 6]> {
        let maps = &self.maps;
        let set = |index: u32| -> Result<RuleSet> {
            let at = edition * sys::RULE_SETS_MAX + index % sys::RULE_SETS_MAX;
            Ok(edition::read::<sys::vcc_rule_set>(&maps.rule_sets, at)?.words)
        };
        let ports = |number: u16| -> Result<sys::vcc_port_sets> {
            edition::read(&maps.port_numbers, edition * sys::PORT_NUMBERS + u32::from(number))
        };
        let by_role = head.role[edition as usize];
        let role = by_role[usize::from(connection.role == Role::Server)];
        let vlan = u32::from(connection.vlan.unwrap_or(0)) % sys::VLAN_IDS;
        let peer = prefix_set(&maps.prefixes, edition, connection)?;
        let peer = peer.unwrap_or(head.any_prefix[edition as usize]);
        let vlan = edition::read(&maps.vlans, edition * sys::VLAN_IDS + vlan)?;
        let tenant: sys::vcc_rule_set =
            edition::read(&maps.tenants, edition * sys::PORTS_MAX + port % sys::PORTS_MAX)?;
        Ok([
            (Property::Port, tenant.words),
            (Property::Peer, set(peer)?),
            (Property::GuestPort, set(ports(connection.guest.port())?.as_guest_port)?),
            (Property::PeerPort, set(ports(connection.peer.port())?.as_peer_port)?),
            (Property::Role, set(role)?),
            (Property::Vlan, set(vlan)?),
        ])
    }

    fn pool(&self, params: &sys::vcc_params) -> Result<Pool> {
        let (name, _) = pools::place(&self.maps, params.pool.into())?;
        Ok(Pool { name, window_bytes: params.pool_bytes })
    }
}

const READ: &str = "read the policy";

/// The index of the set of the longest network around the peer.
fn prefix_set(map: &MapHandle, edition: u32, connection: &Connection) -> Result<Option<u32>> {
    let peer_addr = match connection.peer.ip().to_canonical() {
        std::net::IpAddr::V4(addr) => addr.to_ipv6_mapped().octets(),
        std::net::IpAddr::V6(addr) => addr.octets(),
    };
    let key = sys::vcc_prefix {
        length_bits: sys::PREFIX_EDITION_BITS + 8 * peer_addr.len() as u32,
        edition: edition as u8,
        peer_addr,
        reserved: [0; 3],
    };
    let found = map.lookup(to_bytes(&key), MapFlags::ANY).map_err(|e| Error::system(READ, e))?;
    let index = |bytes: Vec<u8>| bytes.try_into().map(u32::from_ne_bytes);
    found.map(index).transpose().map_err(|_| Error::layout(READ))
}
