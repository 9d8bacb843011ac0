//! Guests with several devices, which are one port: they have one index.

use std::collections::{BTreeMap, HashMap, HashSet};

use vcc_policy::{Affiliation, Policy};
use vcc_port::Inherited;

use super::Ports;
use super::kept_port::KeptPort;

/// The affiliation of each port of another version: that of its first device here that the policy
/// has.
pub(crate) fn inherited<'a>(
    ports: &[Inherited],
    policy: &'a Policy,
) -> Vec<(u32, Affiliation<'a>)> {
    let under = || ports.iter().filter(|port| port.by_policy);
    let here = under().filter(|port| port.is_here);
    let here = here.map(|port| (port.index, port.device.as_str()));
    of_ports(here, under().map(|port| port.index), policy)
}

/// The affiliation of each of `all` ports, by their devices that are `here`.
fn of_ports<'a, 'b>(
    here: impl Iterator<Item = (u32, &'b str)>,
    all: impl Iterator<Item = u32>,
    policy: &'a Policy,
) -> Vec<(u32, Affiliation<'a>)> {
    let mut found: BTreeMap<u32, Affiliation<'_>> = BTreeMap::new();
    for (index, device) in here {
        if let Some(selected) = policy.port_of(device) {
            found.entry(index).or_insert(selected.affiliation());
        }
    }
    for index in all {
        found.entry(index).or_default();
    }
    found.into_iter().collect()
}

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
        let here = self.held.values().map(|held| (held.index, held.port.device()));
        of_ports(here, self.held().map(|held| held.index), policy)
    }

    /// A port drains when the policy names none of its devices, or none of these is here any more: which
    /// connections pass which device is unknown. One that drains by hand continues to.
    pub(super) fn drain_unwanted(&mut self, policy: &Policy) {
        let is_wanted = |held: &&KeptPort| policy.port_of(held.port.device()).is_some();
        let wanted: HashSet<u32> =
            self.held.values().filter(is_wanted).map(|held| held.index).collect();
        for held in self.held.values_mut().chain(&mut self.elsewhere) {
            held.set_draining(held.drained_by_hand || !wanted.contains(&held.index));
        }
    }

    /// Lets one device of each guest send to it, if its rules ask for that.
    pub(super) fn emit(&mut self, policy: &Policy) {
        if self.awaits_policy {
            return;
        }
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
                        "{device} and {} belong to the guest {guest}, but are separate ports: `vcc detach \
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
                    "{device} still shares the port of {} and its rules, but the policy no longer gives \
                     them one guest: `vcc detach {device} --now`, then reload",
                    other.port.device()
                );
                found.push((device, what));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_another_version_has_the_tenant_of_the_device_that_the_policy_names() {
        let text = "[[ports]]\ndevice = \"tap0\"\ntenant = \"acme\"\n[[rules]]\nname = \"r\"\n";
        let policy = Policy::parse(text, "policy").expect("a policy").policy;
        let device = |device: &str, index| Inherited {
            device: device.to_owned(),
            index,
            is_here: true,
            drains: false,
            by_policy: true,
            connections: 0,
            left_alone: 0,
            lost: 0,
        };
        let away = Inherited { is_here: false, ..device("tap0", 9) };
        let by_hand = Inherited { by_policy: false, ..device("tap0", 5) };
        let of_guest = [device("tap0", 7), device("tap1", 7)];
        for of_guest in [of_guest.clone(), {
            let [a, b] = of_guest;
            [b, a]
        }] {
            let ports = [&of_guest[..], &[away.clone(), by_hand.clone()]].concat();
            let tenants: Vec<_> =
                inherited(&ports, &policy).iter().map(|(index, it)| (*index, it.tenant)).collect();
            assert_eq!(tenants, [(7, Some("acme")), (9, None)]);
        }
    }
}
