//! Guests with several devices, which are one port: they have one index.

use std::collections::{BTreeMap, HashMap, HashSet};

use vcc_policy::{Affiliation, Policy};

use super::Ports;
use super::kept_port::KeptPort;

impl Ports {
    /// A device of the guest that another one can join.
    pub(super) fn first_of(&self, guest: &str) -> Option<&KeptPort> {
        let is_of = |held: &&KeptPort| held.guest.as_deref() == Some(guest) && !held.draining;
        self.held.values().find(is_of)
    }

    /// Whether another device of the guest is a port here, or elsewhere.
    pub(super) fn has_other(&self, index: u32) -> bool {
        self.held().any(|held| held.index == index)
    }

    /// The affiliation of each port: that of its first device that the policy has.
    pub(super) fn affiliations<'a>(&self, policy: &'a Policy) -> Vec<(u32, Affiliation<'a>)> {
        let mut found: BTreeMap<u32, Affiliation<'_>> = BTreeMap::new();
        for held in self.held.values() {
            if let Some(selected) = policy.port_of(held.port.device()) {
                found.entry(held.index).or_insert(selected.affiliation());
            }
        }
        for held in self.held() {
            found.entry(held.index).or_default();
        }
        found.into_iter().collect()
    }

    /// A port drains when the policy names none of its devices, or none of these is here any more: which
    /// connections pass which device is unknown.
    pub(super) fn drain_unwanted(&mut self, policy: &Policy) {
        let is_wanted = |held: &&KeptPort| policy.port_of(held.port.device()).is_some();
        let wanted: HashSet<u32> =
            self.held.values().filter(is_wanted).map(|held| held.index).collect();
        for held in self.held.values_mut().chain(&mut self.elsewhere) {
            held.set_draining(!wanted.contains(&held.index));
        }
    }

    /// Lets one device of each guest send to it, if its rules ask for that.
    pub(super) fn emit(&mut self, policy: &Policy) {
        let is_sending =
            |held: &&KeptPort| held.emitting.as_ref().is_some_and(|it| it.is_running());
        let sending = self.held.iter().filter(|(_, held)| is_sending(held));
        let mut by: HashMap<u32, u32> = HashMap::new();
        for (ifindex, held) in sending {
            by.entry(held.index).or_insert(*ifindex);
        }
        for (ifindex, held) in &mut self.held {
            let by = by.entry(held.index).or_insert(*ifindex);
            held.set_emitting(policy, by != ifindex);
        }
    }

    /// Whether there is a guest with several devices of which none sends to it.
    pub(super) fn has_silent_guest(&self) -> bool {
        let mut sending: HashMap<u32, (usize, bool)> = HashMap::new();
        for held in self.held.values() {
            let (devices, sends) = sending.entry(held.index).or_default();
            *devices += 1;
            *sends |= held.emitting.is_some();
        }
        sending.values().any(|(devices, sends)| *devices > 1 && !sends)
    }

    /// Devices that are another port than the policy says, and what to do.
    pub(crate) fn misjoined(&self) -> Vec<(&str, String)> {
        let mut first: HashMap<&str, &KeptPort> = HashMap::new();
        let mut of_index: HashMap<u32, &KeptPort> = HashMap::new();
        let mut found = Vec::new();
        for held in self.held.values() {
            let device = held.port.device();
            if let Some(guest) = &held.guest {
                let other = *first.entry(guest).or_insert(held);
                if other.index != held.index {
                    let what = format!(
                        "{device} is not one port with {}, as devices of the guest {guest} are: `vcc detach \
                         {device} --wait`, then reload",
                        other.port.device()
                    );
                    found.push((device, what));
                }
            }
            let other = *of_index.entry(held.index).or_insert(held);
            if other.port.device() != device && (held.guest.is_none() || held.guest != other.guest)
            {
                let what = format!(
                    "{device} is still one port with {}, and has its rules, though the policy does not give \
                     them one guest: `vcc detach {device} --now`, then reload",
                    other.port.device()
                );
                found.push((device, what));
            }
        }
        found
    }
}
