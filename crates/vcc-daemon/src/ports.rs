//! The devices under the policy: found, attached, adopted, drained, let go.

use std::collections::{BTreeMap, HashMap};

use vcc_engine::{Mode, Treatment};
use vcc_policy::Policy;
use vcc_port::{AttachOptions, PORTS_MAX, Port, SharedPolicy};

use crate::emitting::Emitting;
use crate::heartbeat::Heartbeat;
use crate::links::{self, Link};
use crate::{Result, journal};

pub(crate) struct Ports {
    shared: SharedPolicy,
    /// Of the last policy that was applied here.
    epoch: u32,
    /// By the device's number.
    held: BTreeMap<u32, Held>,
    /// Under the policy, but in another network namespace, where nothing is heard of the device.
    elsewhere: Vec<Held>,
    /// Devices that should be ports and are none, and why.
    left: HashMap<u32, Left>,
    attach_failures: u64,
}

pub(crate) struct Held {
    pub port: Port,
    pub index: u32,
    pub tenant: Option<String>,
    pub draining: bool,
    emitting: Option<Emitting>,
    /// Why it does not send, as far as that was told.
    silent: Option<String>,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Left {
    pub device: String,
    pub reason: String,
    /// Somebody wanted it so: only a reload changes it.
    by_hand: bool,
}

impl Ports {
    /// With what earlier daemons left pinned. That it is understood was looked at before.
    pub(crate) fn adopt(heartbeat: &mut Heartbeat) -> Result<Self> {
        let shared = SharedPolicy::open()?;
        for device in Port::sweep()? {
            journal::notice(&format!("{device} has gone meanwhile: removed what was left of it"));
        }
        let mut ports = Self {
            shared,
            epoch: 0,
            held: BTreeMap::new(),
            elsewhere: Vec::new(),
            left: HashMap::new(),
            attach_failures: 0,
        };
        for mut port in Port::list()? {
            let device = port.device().to_owned();
            let Some(index) = port.index()? else { continue };
            match port.take_over(Some(&ports.shared)) {
                Ok(true) => journal::notice(&format!("{device}: adopted, with newer programs")),
                Ok(false) => journal::info(&format!("{device}: adopted")),
                Err(error) => journal::error(&format!(
                    "{device}: adopted, but with the programs that it had: {error}"
                )),
            }
            let here = port.is_here()?;
            let held =
                Held { port, index, tenant: None, draining: false, emitting: None, silent: None };
            if here {
                ports.held.insert(held.port.ifindex(), held);
            } else {
                journal::warning(&format!("{device} is in another network namespace now"));
                ports.elsewhere.push(held);
            }
            heartbeat.beat();
        }
        Ok(ports)
    }

    pub(crate) fn shared(&self) -> &SharedPolicy {
        &self.shared
    }

    pub(crate) fn held(&self) -> impl Iterator<Item = &Held> {
        self.held.values().chain(&self.elsewhere)
    }

    pub(crate) fn left(&self) -> impl Iterator<Item = &Left> {
        self.left.values()
    }

    /// How often a device could not be made a port.
    pub(crate) fn attach_failures(&self) -> u64 {
        self.attach_failures
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Holds for new connections at once, and for all when it returns, which are so many. An error
    /// changes nothing.
    pub(crate) fn apply(&mut self, policy: &Policy) -> Result<u32> {
        let tenant_of = |held: &Held| policy.port_of(held.port.device()).map(|port| port.tenant());
        let tenants: Vec<(u32, Option<&str>)> = self
            .held
            .values()
            .map(|held| (held.index, tenant_of(held).flatten()))
            .chain(self.elsewhere.iter().map(|held| (held.index, None)))
            .collect();
        self.epoch = self.shared.apply(policy, &tenants)?;
        let mut flows = 0;
        for held in self.held.values().chain(&self.elsewhere) {
            match held.port.judge_flows() {
                Ok(judged) => flows += judged,
                // The next packet of each does it as well.
                Err(error) => journal::warning(&format!("{}: {error}", held.port.device())),
            }
        }
        for held in self.held.values_mut() {
            let selected = policy.port_of(held.port.device());
            held.tenant = selected.and_then(|port| port.tenant()).map(str::to_owned);
            held.drain_or_not(selected.is_none());
            if let Some(selected) = selected {
                held.compare_size(selected.max_flows());
            }
            held.emit_or_not(policy);
        }
        Ok(flows)
    }

    /// The devices are these: the others have gone. `anew`: also those that were left by hand.
    pub(crate) fn are(
        &mut self,
        links: &[Link],
        policy: &Policy,
        anew: bool,
        heartbeat: &mut Heartbeat,
    ) {
        let there = |index: &u32| links.iter().any(|link| link.index == *index);
        let gone: Vec<u32> = self.held.keys().copied().filter(|index| !there(index)).collect();
        for index in gone {
            self.gone(index);
        }
        self.left.retain(|index, left| there(index) && !(anew && left.by_hand));
        for link in links {
            self.is(link, policy);
            heartbeat.beat();
        }
    }

    /// A device is new, or something of it has changed.
    pub(crate) fn is(&mut self, link: &Link, policy: &Policy) {
        if self.held.contains_key(&link.index) {
            self.is_renamed(link, policy);
            return;
        }
        let Some(selected) = policy.port_of(&link.name) else {
            self.left.remove(&link.index);
            return;
        };
        if self.left.get(&link.index).is_some_and(|left| left.by_hand) {
            return;
        }
        let reason = match self.attach(&link.name, selected, policy) {
            // It was gone again before we were done, and its last news is to come.
            Err(error) if is_gone(&*error) => return,
            Ok(held) => {
                let whose = whose(held.tenant.as_deref());
                journal::info(&format!("{}: attached, port {}{whose}", link.name, held.index));
                self.left.remove(&link.index);
                // A device that was renamed meanwhile brings its news itself.
                self.held.insert(held.port.ifindex(), held);
                return;
            }
            Err(error) => error.to_string(),
        };
        let left = Left { device: link.name.clone(), reason, by_hand: false };
        self.attach_failures += 1;
        if self.left.get(&link.index) != Some(&left) {
            journal::warning(&format!("{} is no port: {}", left.device, left.reason));
        }
        self.left.insert(link.index, left);
    }

    fn attach(
        &self,
        device: &str,
        selected: &vcc_policy::PortSelector,
        policy: &Policy,
    ) -> std::result::Result<Held, Box<dyn std::error::Error>> {
        let index = self.free_index().ok_or_else(|| {
            format!("there are {PORTS_MAX} ports already, which is all that a policy can have")
        })?;
        let tenant = selected.tenant();
        self.shared.admit(index, policy, tenant)?;
        let treatment = Treatment { emit: policy.emits_for(tenant), ..Treatment::default() };
        let options = AttachOptions { treatment, max_flows: selected.max_flows() };
        let mut port = Port::attach_under(&self.shared, index, device, &options)?;
        port.pin()?;
        let tenant = tenant.map(str::to_owned);
        let mut held = Held { port, index, tenant, draining: false, emitting: None, silent: None };
        held.emit_or_not(policy);
        Ok(held)
    }

    fn free_index(&self) -> Option<u32> {
        (0..PORTS_MAX).find(|index| self.held().all(|held| held.index != *index))
    }

    fn is_renamed(&mut self, link: &Link, policy: &Policy) {
        let Some(held) = self.held.get_mut(&link.index) else { return };
        let before = held.port.device().to_owned();
        if before == link.name {
            return;
        }
        match Port::open(&link.name) {
            Ok(port) if port.ifindex() == link.index => held.port = port,
            // Renamed again, or gone: there is more news to come.
            _ => return,
        }
        journal::info(&format!("{} was {before}", link.name));
        // Its tenant may be another now, and with it the rules of its connections.
        if let Err(error) = self.apply(policy) {
            journal::error(&format!("{}: its rules are those of {before}: {error}", link.name));
        }
    }

    /// A device has gone, or into another network namespace.
    pub(crate) fn gone(&mut self, index: u32) {
        self.left.remove(&index);
        let Some(mut held) = self.held.remove(&index) else { return };
        held.emitting = None;
        let device = held.port.device().to_owned();
        if held.port.is_attached().unwrap_or(false) {
            journal::notice(&format!("{device} went into another network namespace: draining"));
            held.drain_or_not(true);
            self.elsewhere.push(held);
            return;
        }
        // No program runs there any more that would give back what its flows hold of pools.
        let forgotten = held.port.forget_flows().and_then(|flows| {
            held.port.detach()?;
            Ok(flows)
        });
        match forgotten {
            Ok(flows) => journal::info(&format!("{device} has gone, with {flows} connection(s)")),
            // Another command may have swept it up a moment before.
            Err(error) => journal::info(&format!("{device} has gone: {error}")),
        }
    }

    /// What nobody tells us: looked at every now and then.
    pub(crate) fn look_around(&mut self, policy: &Policy) {
        let mut off = Vec::new();
        for (ifindex, held) in &mut self.held {
            if !held.port.is_attached().unwrap_or(true) || held.is_drained() {
                off.push(*ifindex);
            } else if held.emitting.as_ref().is_some_and(|emitting| !emitting.goes_on())
                || held.silent.is_some()
            {
                held.emitting = None;
                held.emit_or_not(policy);
            }
        }
        // A device that has just gone is off as well, and the news of it still on its way.
        let links = if off.is_empty() { Ok(Vec::new()) } else { links::list() };
        let is_there =
            |index| links.as_ref().map_or(true, |all| all.iter().any(|link| link.index == index));
        for ifindex in off {
            if !is_there(ifindex) {
                self.gone(ifindex);
            } else if let Some(held) = self.held.remove(&ifindex) {
                self.let_go(ifindex, held, policy);
            }
        }
        for held in std::mem::take(&mut self.elsewhere) {
            if !held.port.is_attached().unwrap_or(true) || held.is_drained() {
                self.let_go(held.port.ifindex(), held, policy);
            } else {
                self.elsewhere.push(held);
            }
        }
    }

    /// A port that drained, or that was detached by somebody else.
    fn let_go(&mut self, ifindex: u32, mut held: Held, policy: &Policy) {
        held.emitting = None;
        let device = held.port.device().to_owned();
        let by_hand = held.port.is_attached().is_ok_and(|attached| !attached);
        if by_hand {
            let _ = held.port.forget_flows();
            if !held.port.is_here().unwrap_or(false) {
                // Had the device gone, nobody would have told. Who detached it removed this already.
                let _ = held.port.detach();
            } else if policy.port_of(&device).is_some() {
                let reason = "detached by hand; a reload attaches it again".to_owned();
                journal::notice(&format!("{device}: {reason}"));
                self.left.insert(ifindex, Left { device, reason, by_hand });
            }
            return;
        }
        match held.port.detach() {
            Ok(()) => journal::info(&format!("{device}: drained and detached")),
            Err(error) => journal::warning(&format!("{device}: drained, but {error}")),
        }
    }
}

impl Held {
    fn drain_or_not(&mut self, drain: bool) {
        let device = self.port.device();
        let (mode, told) = match (drain, self.draining) {
            (true, false) => (Mode::Drain, "no port any more: draining"),
            (false, true) => (Mode::Enforce, "a port again"),
            _ => return,
        };
        match self.port.set_mode(mode) {
            Ok(()) => {
                journal::info(&format!("{device}: {told}"));
                self.draining = drain;
            }
            Err(error) => journal::warning(&format!("{device}: {error}")),
        }
    }

    fn is_drained(&self) -> bool {
        self.draining && self.port.drain().is_ok_and(|dependent| dependent == 0)
    }

    fn compare_size(&self, max_flows: u32) {
        let Ok(has) = self.port.max_flows() else { return };
        if has != max_flows {
            journal::notice(&format!(
                "{device}: tracks {has} connections, and not {max_flows}, until it is attached \
                 anew (`vcc detach {device}`, then reload)",
                device = self.port.device()
            ));
        }
    }

    /// As far as the rules of its tenant want it.
    fn emit_or_not(&mut self, policy: &Policy) {
        let wanted = policy.emits_for(self.tenant.as_deref()) && !self.draining;
        if let Err(why) = self.emit(wanted) {
            let why = why.to_string();
            if self.silent.as_ref() != Some(&why) {
                journal::warning(&format!("nothing is sent to the guest: {why}"));
            }
            self.silent = Some(why);
        }
    }

    fn emit(&mut self, wanted: bool) -> Result<()> {
        if self.port.emits()? != wanted {
            self.port.set_emits(wanted)?;
        }
        if !wanted {
            self.emitting = None;
        } else if self.emitting.is_none() {
            self.emitting = Some(Emitting::begin(&self.port)?);
        }
        self.silent = None;
        Ok(())
    }
}

fn is_gone(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(vcc_port::Error::NoSuchDevice { .. }))
}

fn whose(tenant: Option<&str>) -> String {
    tenant.map_or(String::new(), |tenant| format!(", of tenant {tenant}"))
}
