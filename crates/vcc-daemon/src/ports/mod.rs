//! The ports under the policy.

mod checks;
mod churn;
mod devices;
pub(crate) mod guests;
mod kept_port;
mod neighbours;
mod unattached;
mod visibility;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use vcc_policy::{Affiliation, Policy, PortSelector};
use vcc_port::coexistence::Finding;
use vcc_port::{Expedited, Host, Port, SharedPolicy, Turning};

use crate::heartbeat::Heartbeat;
use crate::{Result, journal};
use churn::Churn;
use kept_port::describe_shortage;
pub(crate) use kept_port::{KeptPort, describe_blindness};
pub(crate) use unattached::Unattached;
use unattached::Why;

pub(crate) struct Ports {
    host: Arc<Host>,
    /// Where the kernel has no timers.
    turning: Option<Turning>,
    shared: SharedPolicy,
    /// The epoch of the last policy that was applied here.
    epoch: u32,
    /// No policy has come yet: ports keep the one that they are under.
    awaits_policy: bool,
    /// By ifindex.
    held: BTreeMap<u32, KeptPort>,
    /// Ports under the policy whose devices are in other network namespaces, which send no
    /// events here.
    elsewhere: Vec<KeptPort>,
    /// By ifindex.
    left: HashMap<u32, Unattached>,
    attach_failures: u64,
    churn: Churn,
    /// When the packets of the devices were last compared with what vcc saw.
    compared: Option<Instant>,
    /// Why they could not be, as it was logged.
    cannot_compare: Option<String>,
    /// When ports were last chosen to look at their neighbours.
    chosen: Option<Instant>,
    /// The ports before this ifindex have been asked for the revisions of their hooks.
    asked_up_to: u32,
    /// Why their neighbours could not be looked at, as it was logged.
    cannot_look: Option<String>,
}

impl Ports {
    /// Takes over the ports that earlier daemons left pinned; the caller has checked their version.
    pub(crate) fn adopt(heartbeat: &mut Heartbeat) -> Result<Self> {
        for device in Port::sweep()? {
            journal::notice!(port = &device, "{device} is gone: removed its pinned maps");
        }
        if let Some(why) = Expedited::obstacle() {
            journal::notice!("attaching takes about 40 ms per port: {why}");
        }
        let host = take_over(Host::open()?);
        let turning = host.turn_wheels()?;
        let mut ports = Self {
            host,
            turning,
            // After the host, which leaves no policy if the kernel refuses its programs.
            shared: SharedPolicy::open()?,
            epoch: 0,
            awaits_policy: false,
            held: BTreeMap::new(),
            elsewhere: Vec::new(),
            left: HashMap::new(),
            attach_failures: 0,
            churn: Churn::begin(),
            compared: None,
            cannot_compare: None,
            chosen: None,
            asked_up_to: 0,
            cannot_look: None,
        };
        for mut port in Port::list_of(&ports.host)? {
            let device = port.device().to_owned();
            let Some(index) = port.index()? else { continue };
            match port.renew() {
                Ok(true) => {
                    journal::notice!(port = &device, "{device}: adopted, with newer programs")
                }
                Ok(false) => journal::info!(port = &device, "{device}: adopted"),
                Err(error) => journal::error!(
                    port = &device,
                    "{device}: adopted, but still runs its previous programs: {error}"
                ),
            }
            let (here, draining) = (port.is_here()?, port.drains()?);
            let held = KeptPort { draining, ..KeptPort::new(port, index, Affiliation::default()) };
            if here {
                ports.held.insert(held.port.ifindex(), held);
            } else {
                journal::warning!(port = &device, "{device} is in another network namespace");
                ports.elsewhere.push(held);
            }
            heartbeat.beat();
        }
        Ok(ports)
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Why the wheels of all ports stand still, if they do.
    pub(crate) fn still(&self) -> Option<String> {
        self.turning.as_ref().and_then(Turning::trouble)
    }

    pub(crate) fn shared(&self) -> &SharedPolicy {
        &self.shared
    }

    pub(crate) fn held(&self) -> impl Iterator<Item = &KeptPort> {
        self.held.values().chain(&self.elsewhere)
    }

    /// Devices that should be ports and are not.
    pub(crate) fn left(&self) -> impl Iterator<Item = &Unattached> {
        self.left.values().filter(|left| left.why == Why::Problem)
    }

    /// Devices of the host itself that a pattern matches, with what they are.
    pub(crate) fn of_host(&self) -> impl Iterator<Item = &Unattached> {
        self.left.values().filter(|left| left.why == Why::IsOfHost)
    }

    /// How often attaching to a device failed. Repeated failures for the same reason count once.
    pub(crate) fn attach_failures(&self) -> u64 {
        self.attach_failures
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Ports to whose guests nothing can be sent although their rules ask for it, and the reason.
    pub(crate) fn silent(&self) -> impl Iterator<Item = (&str, &str)> {
        self.held().filter_map(|held| Some((held.port.device(), held.silent.as_deref()?)))
    }

    /// Ports whose flow table is nearly full, and what to do.
    pub(crate) fn short(&self) -> impl Iterator<Item = (&str, String)> {
        self.held().filter_map(|held| {
            let device = held.port.device();
            Some((device, describe_shortage(device, held.shortage?)))
        })
    }

    /// Ports that see no packet of their devices, and how many packets passed.
    pub(crate) fn blind(&self) -> impl Iterator<Item = (&str, u64)> {
        self.held.values().filter_map(|held| Some((held.port.device(), held.visibility.unseen()?)))
    }

    /// Other programs at the devices of ports that interfere, by device.
    pub(crate) fn neighbours(&self) -> impl Iterator<Item = (&str, &Finding)> {
        self.held().flat_map(|held| {
            held.harmful_neighbours().iter().map(|finding| (held.port.device(), finding))
        })
    }

    /// Ports whose devices have names that are not UTF-8.
    pub(crate) fn misnamed(&self) -> impl Iterator<Item = &str> {
        self.held().filter(|held| held.is_misnamed).map(|held| held.port.device())
    }

    /// Whether all ports that there are keep what they are under another policy.
    pub(crate) fn keep_their_terms(&self, before: &Policy, policy: &Policy) -> bool {
        let keeps = |held: &KeptPort| {
            let device = held.port.device();
            let is_drained_by_policy = held.draining && !held.drained_by_hand;
            !is_drained_by_policy && terms(before, device) == terms(policy, device)
        };
        self.held.values().all(keeps)
    }

    /// Leaves the policy in force as it is, until another is applied.
    pub(crate) fn keep_policy(&mut self) -> Result<()> {
        self.epoch = self.shared.epoch()?;
        self.awaits_policy = true;
        Ok(())
    }

    pub(crate) fn have_drained_by_hand(&self) -> bool {
        self.held().any(|held| held.drained_by_hand)
    }

    /// Puts a policy in force: for new connections at once, for all when this returns. Returns how
    /// many there were. `is_reload`: ports that it names and that drain by hand take new connections
    /// again. An error changes nothing.
    pub(crate) fn apply(&mut self, policy: &Policy, is_reload: bool) -> Result<u32> {
        for held in self.held() {
            held.port.settle_flows()?;
        }
        let ports = self.affiliations(policy);
        self.epoch = self.shared.apply(policy, &ports)?;
        self.awaits_policy = false;
        for held in self.held.values_mut().chain(&mut self.elsewhere) {
            held.drained_by_hand &= !is_reload;
        }
        let mut flows = 0;
        for held in self.held.values().chain(&self.elsewhere) {
            match held.port.judge_flows() {
                Ok(judged) => flows += judged,
                // The next packet of each flow judges it as well, and the next policy waits for
                // all.
                Err(error) => journal::warning!(port = held, "{}: {error}", held.port.device()),
            }
        }
        for held in self.held.values_mut() {
            let selected = policy.port_of(held.port.device());
            held.set_affiliation(selected.map(PortSelector::affiliation).unwrap_or_default());
            held.guest = selected.and_then(|port| port.guest()).map(str::to_owned);
            if let Some(selected) = selected {
                held.check_table_size(selected.max_flows());
                held.set_tunnels(selected.inside());
            }
        }
        self.drain_unwanted(policy);
        self.emit(policy);
        Ok(flows)
    }
}

/// Affiliation, guest, size of the table, tunnels.
type Terms<'a> = (Affiliation<'a>, Option<&'a str>, u32, u32);

/// The port that a policy makes of a device; None: no port.
fn terms<'a>(policy: &'a Policy, device: &str) -> Option<Terms<'a>> {
    let port = policy.port_of(device)?;
    Some((port.affiliation(), port.guest(), port.max_flows(), port.inside().bits()))
}

/// Makes existing ports call the programs of this version of vcc. If the kernel refuses these, the
/// previous ones keep running.
fn take_over(host: Arc<Host>) -> Arc<Host> {
    match Arc::clone(&host).take_over() {
        Ok((host, replaced)) => {
            if replaced {
                journal::notice!("existing ports run the newer programs now");
            }
            host
        }
        Err(error) => {
            journal::error!("upgrading the ports' programs failed: {error}");
            host
        }
    }
}
