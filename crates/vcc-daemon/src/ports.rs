//! The devices under the policy: found, attached, adopted, drained, let go.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use vcc_engine::{Mode, Treatment};
use vcc_policy::Policy;
use vcc_port::{AttachOptions, PORTS_MAX, Port, SharedPolicy, Shortage};

use crate::emitting::Emitting;
use crate::heartbeat::Heartbeat;
use crate::links::{self, Link};
use crate::{Result, journal, signals};

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
    /// As last looked at: `vcc detach` has it drain as well.
    pub draining: bool,
    emitting: Option<Emitting>,
    /// Why it does not send, as far as that was told.
    silent: Option<String>,
    /// As last looked at.
    shortage: Option<Shortage>,
    /// It has got a name by which it cannot be asked for.
    is_misnamed: bool,
}

pub(crate) struct Left {
    pub link: Link,
    pub reason: String,
    /// None: somebody wanted it so, and only a reload changes it.
    again: Option<Again>,
}

/// When to try what has failed again; what is in the way may go without a word.
#[derive(Clone, Copy)]
struct Again {
    at: Instant,
    pause: Duration,
}

impl Again {
    const FIRST: Duration = Duration::from_secs(1);
    const LAST: Duration = Duration::from_secs(60);

    /// After a failure, of which there may have been others before.
    fn after(before: Option<Again>) -> Self {
        let pause = before.map_or(Self::FIRST, |before| (before.pause * 2).min(Self::LAST));
        Self { at: Instant::now() + pause, pause }
    }

    fn is_due(self) -> bool {
        self.at <= Instant::now()
    }
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
            let (here, draining) = (port.is_here()?, port.drains()?);
            let held = Held { draining, ..Held::new(port, index, None) };
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

    /// How often a device could not be made a port; again for the same reason does not count.
    pub(crate) fn attach_failures(&self) -> u64 {
        self.attach_failures
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Ports whose rules want segments sent that cannot be sent, and why.
    pub(crate) fn silent(&self) -> impl Iterator<Item = (&str, &str)> {
        self.held().filter_map(|held| Some((held.port.device(), held.silent.as_deref()?)))
    }

    /// Ports whose table is nearly full, and what to do about it.
    pub(crate) fn short(&self) -> impl Iterator<Item = (&str, String)> {
        self.held().filter_map(|held| {
            let device = held.port.device();
            Some((device, told_shortage(device, held.shortage?)))
        })
    }

    /// Ports whose devices have names that are no text.
    pub(crate) fn misnamed(&self) -> impl Iterator<Item = &str> {
        self.held().filter(|held| held.is_misnamed).map(|held| held.port.device())
    }

    /// Holds for new connections at once, and for all when it returns, which are so many. An error
    /// changes nothing.
    pub(crate) fn apply(&mut self, policy: &Policy) -> Result<u32> {
        for held in self.held() {
            held.port.settle_flows()?;
        }
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
                // The next packet of each does it as well, and the next policy waits for all.
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
        self.left.retain(|index, left| there(index) && !(anew && left.again.is_none()));
        for link in links {
            if signals::is_ending() {
                return;
            }
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
        let is_it =
            |held: &Held| held.port.ifindex() == link.index && held.port.is_back().unwrap_or(false);
        if let Some(at) = self.elsewhere.iter().position(is_it) {
            self.is_back(at, link, policy);
            return;
        }
        let Some(selected) = policy.port_of(&link.name) else {
            self.left.remove(&link.index);
            return;
        };
        if self.left.get(&link.index).is_some_and(|left| left.again.is_none()) {
            return;
        }
        if !link.is_exact {
            let index = link.index;
            self.leave(
                link,
                format!("its name is not UTF-8: rename it (`ip link set dev if{index} name NAME`)"),
            );
            return;
        }
        match self.attach(&link.name, selected, policy) {
            // It was gone again before we were done, and its last news is to come.
            Err(error) if is_gone(&*error) => {}
            Ok(held) => {
                let whose = whose(held.tenant.as_deref());
                journal::info(&format!("{}: attached, port {}{whose}", link.name, held.index));
                self.left.remove(&link.index);
                // A device that was renamed meanwhile brings its news itself.
                self.held.insert(held.port.ifindex(), held);
            }
            Err(error) => self.leave(link, error.to_string()),
        }
    }

    /// For now.
    fn leave(&mut self, link: &Link, reason: String) {
        let before = self.left.get(&link.index);
        let again = Some(Again::after(before.and_then(|left| left.again)));
        if before.is_none_or(|left| (&left.link, &left.reason) != (link, &reason)) {
            self.attach_failures += 1;
            journal::warning(&format!("{} is no port: {reason}", link.name));
        }
        self.left.insert(link.index, Left { link: link.clone(), reason, again });
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
        let mut held = Held::new(port, index, tenant.map(str::to_owned));
        held.emit_or_not(policy);
        Ok(held)
    }

    fn free_index(&self) -> Option<u32> {
        (0..PORTS_MAX).find(|index| self.held().all(|held| held.index != *index))
    }

    fn is_renamed(&mut self, link: &Link, policy: &Policy) {
        let Some(before) = self.rename(link) else { return };
        let terms = |device| policy.port_of(device).map(|port| (port.tenant(), port.max_flows()));
        if terms(&before) != terms(&link.name) {
            self.come_under(policy, &link.name);
        }
    }

    /// Returns the name before, where it was another.
    fn rename(&mut self, link: &Link) -> Option<String> {
        let held = self.held.get_mut(&link.index)?;
        let before = held.port.device().to_owned();
        if held.is_misnamed == link.is_exact {
            held.is_misnamed = !link.is_exact;
            if held.is_misnamed {
                journal::warning(&format!("{before} is {} now, which is not UTF-8", link.name));
            }
        }
        if before == link.name || held.is_misnamed {
            return None;
        }
        match Port::open(&link.name) {
            Ok(port) if port.ifindex() == link.index => held.port = port,
            // Renamed again, or gone: there is more news to come.
            _ => return None,
        }
        journal::info(&format!("{} was {before}", link.name));
        Some(before)
    }

    /// From another network namespace; see [`Ports::gone`].
    fn is_back(&mut self, at: usize, link: &Link, policy: &Policy) {
        let held = self.elsewhere.swap_remove(at);
        journal::notice(&format!("{} has come back", link.name));
        self.held.insert(link.index, held);
        self.rename(link);
        self.come_under(policy, &link.name);
    }

    /// A device's tenant may be another than before, and with it the rules of its connections.
    fn come_under(&mut self, policy: &Policy, device: &str) {
        if let Err(error) = self.apply(policy) {
            journal::error(&format!("{device}: its rules are those from before: {error}"));
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
        match held.port.detach() {
            Ok(flows) => journal::info(&format!("{device} has gone, with {flows} connection(s)")),
            // Another command may have swept it up a moment before.
            Err(error) => journal::info(&format!("{device} has gone: {error}")),
        }
    }

    /// What nobody tells us: looked at every now and then.
    pub(crate) fn look_around(&mut self, policy: &Policy) {
        self.catch_up(policy);
        self.try_again(policy);
    }

    /// What became of ports since they were looked at: drained, detached by somebody else, gone.
    pub(crate) fn catch_up(&mut self, policy: &Policy) {
        let mut off = Vec::new();
        for (ifindex, held) in &mut self.held {
            held.look_at_usage();
            held.draining = held.port.drains().unwrap_or(held.draining);
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
                let wanted = policy.port_of(held.port.device()).is_some();
                self.let_go(held, wanted);
            }
        }
        for held in std::mem::take(&mut self.elsewhere) {
            if !held.port.is_attached().unwrap_or(true) || held.is_drained() {
                self.let_go(held, false);
            } else {
                self.elsewhere.push(held);
            }
        }
    }

    fn try_again(&mut self, policy: &Policy) {
        let due = |left: &Left| left.again.is_some_and(Again::is_due);
        let again: Vec<Link> =
            self.left.values().filter(|left| due(left)).map(|left| left.link.clone()).collect();
        for link in again {
            self.is(&link, policy);
        }
    }

    /// A port that drained, or that was detached by somebody else; perhaps `wanted` by the policy.
    fn let_go(&mut self, mut held: Held, wanted: bool) {
        held.emitting = None;
        let (device, index) = (held.port.device().to_owned(), held.port.ifindex());
        let off = held.port.is_attached().is_ok_and(|attached| !attached);
        match held.port.detach() {
            // Who detached it has removed what is pinned, unless its device went, out of our sight.
            _ if off => {}
            Ok(_) => journal::info(&format!("{device}: drained and detached")),
            Err(error) => journal::warning(&format!("{device}: drained, but {error}")),
        }
        if wanted {
            let reason = "detached by hand; a reload attaches it again".to_owned();
            journal::notice(&format!("{device}: {reason}"));
            let link = Link { index, name: device, is_exact: true };
            self.left.insert(index, Left { link, reason, again: None });
        }
    }
}

impl Held {
    fn new(port: Port, index: u32, tenant: Option<String>) -> Self {
        Self {
            port,
            index,
            tenant,
            draining: false,
            emitting: None,
            silent: None,
            shortage: None,
            is_misnamed: false,
        }
    }

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

    fn look_at_usage(&mut self) {
        let before = self.shortage;
        // A port that cannot be read has problems of its own.
        if let (Ok(usage), Ok(max_flows)) = (self.port.usage(), self.port.max_flows()) {
            self.shortage = usage.shortage(max_flows, before);
        }
        if self.shortage == before {
            return;
        }
        let device = self.port.device();
        match self.shortage {
            Some(shortage) => journal::warning(&told_shortage(device, shortage)),
            None => journal::notice(&format!("{device}: its flow table has room again")),
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

fn told_shortage(device: &str, shortage: Shortage) -> String {
    match shortage {
        Shortage::Connections => format!(
            "{device}: its flow table is nearly full; new connections will pass untranslated, or be \
             refused where their rule has on_full = \"drop\" (raise max_flows, then \
             `vcc detach {device} --now` and `vcc policy apply`)"
        ),
        Shortage::Handshakes => format!(
            "{device}: a flood of SYNs, or a scan, fills its flow table's part for handshakes; the \
             oldest give way to newer ones (`vcc flows {device}` shows whose)"
        ),
    }
}

fn whose(tenant: Option<&str>) -> String {
    tenant.map_or(String::new(), |tenant| format!(", of tenant {tenant}"))
}
