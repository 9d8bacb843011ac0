//! Changes of devices: they appear, disappear, are renamed, and move between network namespaces.

use vcc_engine::Params;
use vcc_policy::Policy;
use vcc_port::coexistence;
use vcc_port::links::Link;
use vcc_port::{AttachOptions, Detour, Port};

use super::kept_port::KeptPort;
use super::neighbours::Neighbours;
use super::unattached::{Retry, Unattached, Why};
use super::{Ports, terms};
use crate::heartbeat::Heartbeat;
use crate::journal::{self, About};
use crate::signals;

impl Ports {
    /// Takes the list of all devices. `anew`: attaches again to devices that were detached by hand.
    pub(crate) fn set_devices(
        &mut self,
        links: &[Link],
        policy: &Policy,
        anew: bool,
        heartbeat: &mut Heartbeat,
    ) {
        let there = |index: &u32| links.iter().any(|link| link.index == *index);
        let gone: Vec<u32> = self.held.keys().copied().filter(|index| !there(index)).collect();
        for index in gone {
            self.device_gone(index);
        }
        self.left.retain(|index, left| there(index) && !(anew && left.again.is_none()));
        for link in links {
            if signals::is_ending() {
                return;
            }
            self.device_changed(link, policy);
            heartbeat.beat();
        }
    }

    /// A device is new, or an attribute of it has changed.
    pub(crate) fn device_changed(&mut self, link: &Link, policy: &Policy) {
        if let Some(held) = self.held.get_mut(&link.index) {
            held.neighbours.have_changed();
            self.device_renamed(link, policy);
            return;
        }
        let is_it = |held: &KeptPort| {
            held.port.ifindex() == link.index && held.port.is_back().unwrap_or(false)
        };
        if let Some(at) = self.elsewhere.iter().position(is_it) {
            self.device_returned(at, link, policy);
            return;
        }
        let name = &link.name;
        let selected = policy.port_of(name).filter(|_| !Detour::is_tap(name));
        let Some(selected) = selected else {
            journal::debug!(port = name, "{name}: no [[ports]] of the policy makes it a port");
            self.left.remove(&link.index);
            return;
        };
        if self.left.get(&link.index).is_some_and(|left| left.again.is_none()) {
            journal::debug!(port = name, "{name}: detached by hand, and stays so until a reload");
            return;
        }
        if !link.is_exact {
            let index = link.index;
            self.retry_later(
                link,
                format!("its name is not UTF-8: rename it (`ip link set dev if{index} name NAME`)"),
            );
            return;
        }
        if vcc_view::serves_tap(&link.name) {
            self.leave_served(link);
            return;
        }
        if !selected.names(&link.name) {
            match coexistence::host_device(link.index) {
                Ok(None) => {}
                Ok(Some(device)) => return self.leave_to_host(link, device.what),
                Err(error) => return self.retry_later(link, error.to_string()),
            }
        }
        match self.attach(&link.name, selected, policy) {
            // The device disappeared meanwhile; its event follows.
            Err(error) if is_gone(&*error) => {
                journal::debug!(port = name, "{name}: gone before it was attached");
            }
            Ok(held) => {
                self.churn.restart();
                let whose = whose(held.tenant.as_deref(), held.guest.as_deref());
                journal::info!(port = &held, "{}: attached, port {}{whose}", link.name, held.index);
                self.left.remove(&link.index);
                // If it was renamed meanwhile, that event follows.
                self.held.insert(held.port.ifindex(), held);
                self.emit(policy);
            }
            Err(error) => self.retry_later(link, error.to_string()),
        }
    }

    /// By a pattern, a device of the host itself does not become a port.
    fn leave_to_host(&mut self, link: &Link, reason: String) {
        let before = self.left.get(&link.index).filter(|left| left.why == Why::IsOfHost);
        let again = Some(Retry::after(before.and_then(|left| left.again)));
        if before.is_none_or(|left| left.reason != reason) {
            let name = &link.name;
            journal::warning!(
                port = name,
                "{name} does not become a port by a pattern, because it is the host's own: {reason}. Match \
                 guests' devices alone, or add [[ports]] with device = \"{name}\" before the pattern"
            );
        }
        let why = Why::IsOfHost;
        self.left.insert(link.index, Unattached { link: link.clone(), reason, why, again });
    }

    /// Tries again later.
    fn retry_later(&mut self, link: &Link, reason: String) {
        let before = self.left.get(&link.index).filter(|left| left.why == Why::Problem);
        let again = Retry::after(before.and_then(|left| left.again));
        journal::debug!(port = &link.name, "{}: the next attempt is in {again}", link.name);
        if before.is_none_or(|left| (&left.link, &left.reason) != (link, &reason)) {
            self.attach_failures += 1;
            journal::warning!(port = &link.name, "{} is not a port: {reason}", link.name);
        }
        let (why, again) = (Why::Problem, Some(again));
        self.left.insert(link.index, Unattached { link: link.clone(), reason, why, again });
    }

    /// A process of `vcc domain` translates the device's connections. When it has ended, the device
    /// becomes a port.
    pub(super) fn leave_served(&mut self, link: &Link) {
        let before = self.left.get(&link.index).filter(|left| left.why == Why::IsServed);
        let again = Some(Retry::after(before.and_then(|left| left.again)));
        let reason = "`vcc domain` serves it".to_owned();
        if before.is_none() {
            journal::notice!(port = &link.name, "{} does not become a port: {reason}", link.name);
        }
        let why = Why::IsServed;
        self.left.insert(link.index, Unattached { link: link.clone(), reason, why, again });
    }

    fn attach(
        &self,
        device: &str,
        selected: &vcc_policy::PortSelector,
        policy: &Policy,
    ) -> std::result::Result<KeptPort, Box<dyn std::error::Error>> {
        let affiliation = selected.affiliation();
        let params = Params::with(|p| p.emit = policy.emits_for(affiliation).into());
        let (max_flows, inside, order) =
            (selected.max_flows(), selected.inside(), selected.order());
        let options = AttachOptions { params, max_flows, inside, order };
        let admit = |index| self.shared.admit(index, policy, affiliation);
        let (port, index) = match selected.guest().and_then(|guest| self.first_of(guest)) {
            Some(first) => (first.port.join(&[device], order)?.remove(0), first.index),
            None => Port::attach_pinned_under(&self.host, device, &options, admit)?,
        };
        let guest = selected.guest().map(str::to_owned);
        Ok(KeptPort { guest, ..KeptPort::new(port, index, affiliation) })
    }

    fn device_renamed(&mut self, link: &Link, policy: &Policy) {
        let Some(before) = self.rename(link) else { return };
        if terms(policy, &before) != terms(policy, &link.name) {
            self.update_tenant(policy, &link.name);
        }
    }

    /// Returns the previous name if the name has changed.
    fn rename(&mut self, link: &Link) -> Option<String> {
        let held = self.held.get_mut(&link.index)?;
        let before = held.port.device().to_owned();
        if held.is_misnamed == link.is_exact {
            held.is_misnamed = !link.is_exact;
            if held.is_misnamed {
                journal::warning!(
                    port = &*held,
                    "{before} was renamed to {}, which is not UTF-8: rename it",
                    link.name
                );
            }
        }
        if before == link.name || held.is_misnamed {
            return None;
        }
        match Port::open(&link.name) {
            Ok(port) if port.ifindex() == link.index => held.port = port,
            // Renamed again, or gone: that event follows.
            _ => return None,
        }
        journal::info!(port = &*held, "{} was renamed; its name was {before}", link.name);
        Some(before)
    }

    /// A device has come back from another network namespace; see [`Ports::device_gone`].
    fn device_returned(&mut self, at: usize, link: &Link, policy: &Policy) {
        let held = self.elsewhere.swap_remove(at);
        journal::notice!(
            port = &held,
            "{} has come back from another network namespace",
            link.name
        );
        self.held.insert(link.index, held);
        self.rename(link);
        self.update_tenant(policy, &link.name);
    }

    /// A device's tenant may have changed, and with it the rules of its connections.
    fn update_tenant(&mut self, policy: &Policy, device: &str) {
        if self.awaits_policy {
            return;
        }
        if let Err(error) = self.apply(policy, false) {
            journal::error!(port = device, "{device}: keeps its previous rules: {error}");
        }
    }

    /// A device was deleted, or moved to another network namespace.
    pub(crate) fn device_gone(&mut self, index: u32) {
        self.left.remove(&index);
        let Some(mut held) = self.held.remove(&index) else { return };
        held.emitting = None;
        self.churn.restart();
        let device = held.port.device().to_owned();
        if held.port.is_attached().unwrap_or(false) {
            // If other devices of the guest are here, any of its connections may pass those.
            let is_last = !self.held.values().any(|other| other.index == held.index);
            let drains = is_last && !self.awaits_policy;
            let draining = if drains { ": draining" } else { "" };
            journal::notice!(
                port = &held,
                "{device} was moved to another network namespace{draining}"
            );
            if !self.awaits_policy {
                held.set_draining(drains || held.drained_by_hand);
            }
            // The neighbours here are not those there, which are not watched.
            held.neighbours = Neighbours::default();
            self.elsewhere.push(held);
            return;
        }
        let about = About { device: &device, tenant: held.tenant.as_deref() };
        let is_kept = self.has_other(held.index);
        // Moved devices send no events here.
        if !self.held.values().any(|other| other.index == held.index) {
            let moved = self.elsewhere.iter_mut().filter(|other| other.index == held.index);
            moved.for_each(|other| other.set_draining(true));
        }
        match held.port.detach() {
            Ok(_) if is_kept => {
                journal::info!(port = about, "{device} is gone; its guest has other devices");
            }
            Ok(flows) => {
                journal::info!(port = about, "{device} is gone, with {flows} connection(s)")
            }
            // Another command may have removed it a moment before.
            Err(error) => journal::info!(port = about, "{device} is gone: {error}"),
        }
    }
}

fn is_gone(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(vcc_port::Error::NoSuchDevice { .. }))
}

fn whose(tenant: Option<&str>, guest: Option<&str>) -> String {
    let of = |what, name: Option<&str>| name.map(|name| format!(", of {what} {name}"));
    [of("tenant", tenant), of("guest", guest)].into_iter().flatten().collect()
}
