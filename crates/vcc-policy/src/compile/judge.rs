//! The look-ups that the datapath makes.

use super::sets::{first_in_all, insert};
use super::{Compiled, RuleSet, sets::EMPTY};
use crate::connection::{Connection, Role};
use crate::network::{address_bits, masked};

impl Compiled {
    /// The rules that do not exclude a tenant, which are the same for all connections of a port.
    pub fn tenant_set(&self, tenant: Option<&str>) -> RuleSet {
        let mut set = EMPTY;
        for (place, wanted) in self.tenants.iter().enumerate() {
            let admitted = wanted
                .as_ref()
                .is_none_or(|wanted| tenant.is_some_and(|t| wanted.iter().any(|w| w == t)));
            if admitted {
                insert(&mut set, place);
            }
        }
        set
    }

    /// The index of the first rule that matches; of the connection's tenant only `tenant` counts.
    pub fn judge(&self, tenant: &RuleSet, c: &Connection) -> usize {
        let set = |index: u32| &self.sets[index as usize];
        let role = match c.role {
            Role::Client => self.roles[0],
            Role::Server => self.roles[1],
        };
        let sets = [
            tenant,
            set(self.prefix_set(address_bits(c.peer_address()))),
            set(self.port_numbers[usize::from(c.guest.port())][0]),
            set(self.port_numbers[usize::from(c.peer.port())][1]),
            set(role),
            set(self.vlans[usize::from(c.vlan_id())]),
        ];
        // The default is in every set.
        first_in_all(sets).unwrap_or(self.tenants.len() - 1)
    }

    fn prefix_set(&self, addr: u128) -> u32 {
        let of_length = |length: u8| {
            let key = (masked(addr, length).to_be_bytes(), length);
            self.prefixes.binary_search_by_key(&key, |prefix| (prefix.addr, prefix.length)).ok()
        };
        let longest = (0..=128).rev().find_map(of_length);
        longest.map_or(self.prefix_default, |at| self.prefixes[at].set)
    }
}
