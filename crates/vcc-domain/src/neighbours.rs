//! Learns the MAC addresses for generated segments from the guest's frames.

use std::collections::BTreeMap;

use vcc_engine::sys;

use crate::frame::Direction;
use vcc_engine::FlowKey;
use vcc_net::wire::MAC_BYTES;

/// The limit of the datapath's `neighbours` map. When full, no new addresses are learned.
const NEIGHBOURS_MAX: usize = 1024;

/// Address and VLAN ID: a guest may have several addresses behind one card.
type Place = ([u8; 16], u16);

#[derive(Clone, Default)]
pub(crate) struct Neighbours(BTreeMap<Place, sys::vcc_neighbour>);

impl Neighbours {
    /// Learns from a frame of the guest, which has at least an Ethernet header.
    pub(crate) fn learn(&mut self, flow: &FlowKey, frame: &[u8]) {
        self.insert(flow, beside(frame));
    }

    pub(crate) fn insert(&mut self, flow: &FlowKey, neighbour: sys::vcc_neighbour) {
        let place = place(flow);
        if self.0.len() >= NEIGHBOURS_MAX && !self.0.contains_key(&place) {
            return;
        }
        self.0.insert(place, neighbour);
    }

    pub(crate) fn find(&self, flow: &FlowKey) -> Option<&sys::vcc_neighbour> {
        self.0.get(&place(flow))
    }
}

/// The addresses of a frame in this direction.
pub(crate) fn between(direction: Direction, frame: &[u8]) -> sys::vcc_neighbour {
    let mut neighbour = beside(frame);
    if direction == Direction::ToGuest {
        std::mem::swap(&mut neighbour.guest_mac, &mut neighbour.next_hop_mac);
    }
    neighbour
}

/// The addresses of a frame of the guest.
pub(crate) fn beside(frame: &[u8]) -> sys::vcc_neighbour {
    let mut neighbour = sys::vcc_neighbour::default();
    neighbour.next_hop_mac.copy_from_slice(&frame[..MAC_BYTES]);
    neighbour.guest_mac.copy_from_slice(&frame[MAC_BYTES..2 * MAC_BYTES]);
    neighbour
}

fn place(flow: &FlowKey) -> Place {
    let key = flow.as_raw();
    (key.guest_addr, key.vlan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_list_only_updates_known_addresses() {
        let guest = |number: usize| {
            let address = [10, 0, (number >> 8) as u8, number as u8];
            FlowKey::new((address, 1).into(), ([10, 9, 9, 9], 2).into(), Some(3))
        };
        let mut neighbours = Neighbours::default();
        for number in 0..=NEIGHBOURS_MAX {
            neighbours.learn(&guest(number), &[1; 14]);
        }
        neighbours.learn(&guest(0), &[2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 8, 0]);
        let first = neighbours.find(&guest(0)).expect("known");
        assert_eq!((first.guest_mac, first.next_hop_mac), ([3; 6], [2; 6]));
        assert!(neighbours.find(&guest(NEIGHBOURS_MAX - 1)).is_some());
        assert!(neighbours.find(&guest(NEIGHBOURS_MAX)).is_none());
    }
}
