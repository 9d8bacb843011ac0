//! The look-ups that the datapath makes.

use super::sets::{first_in_all, insert};
use super::{Compiled, RuleSet, sets::EMPTY};
use crate::affiliation::Affiliation;
use crate::conditions::admits_name;
use crate::connection::{Connection, Role};
use crate::network::{address_bits, masked};

impl Compiled {
    /// The rules that do not exclude a port's tenant and class, which are the same for all its connections.
    pub fn port_set(&self, port: Affiliation<'_>) -> RuleSet {
        let mut set = EMPTY;
        for (place, [tenants, classes]) in self.ports.iter().enumerate() {
            if admits_name(tenants, port.tenant) && admits_name(classes, port.class) {
                insert(&mut set, place);
            }
        }
        set
    }

    /// The index of the first rule that matches; of the connection's affiliation only `port` counts.
    pub fn judge(&self, port: &RuleSet, c: &Connection) -> usize {
        let set = |index: u32| &self.sets[index as usize];
        let role = match c.role {
            Role::Client => self.roles[0],
            Role::Server => self.roles[1],
        };
        let sets = [
            port,
            set(self.prefix_set(address_bits(c.peer_address()))),
            set(self.port_numbers[usize::from(c.guest.port())][0]),
            set(self.port_numbers[usize::from(c.peer.port())][1]),
            set(role),
            set(self.vlans[usize::from(c.vlan_id())]),
        ];
        // The default is in every set.
        first_in_all(sets).unwrap_or(self.ports.len() - 1)
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
