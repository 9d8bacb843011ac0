//! Pinned ports under a policy, with many connections.

use std::sync::Arc;

use vcc_policy::{Affiliation, Policy};
use vcc_port::{AttachOptions, Host, Port, Result, SharedPolicy};

use super::crowd::{Crowd, ports_of, wrong};

/// Ended connections are forgotten as soon as possible.
const POLICY: &str = "[default]\nidle_closed = \"1s\"";

/// In namespaces without other ports.
pub struct BusyHost {
    host: Arc<Host>,
    ports: Vec<Port>,
    policy: SharedPolicy,
    crowd: Crowd,
}

impl BusyHost {
    /// The number of devices that as many connections need.
    pub fn devices(connections: u32) -> u32 {
        ports_of(connections)
    }

    pub fn create(devices: &[String], connections: u32) -> Result<Self> {
        let host = Host::open()?;
        let policy = SharedPolicy::open()?;
        let rules = rules()?;
        policy.apply(&rules, &affiliations(devices.len()))?;
        let options = AttachOptions::default();
        let attach = |device: &String| {
            let admit = |index| policy.admit(index, &rules, Affiliation::default());
            Port::attach_pinned_under(&host, device, &options, admit).map(|(port, _)| port)
        };
        let ports = devices.iter().map(attach).collect::<Result<_>>()?;
        let crowd = Crowd::establish(Arc::clone(&host), connections)?;
        Ok(Self { host, ports, policy, crowd })
    }

    /// Puts another edition of the policy in force, and brings all connections under it.
    pub fn apply(&self) -> Result<()> {
        self.ports.iter().try_for_each(|port| port.settle_flows().map(drop))?;
        self.policy.apply(&rules()?, &affiliations(self.ports.len()))?;
        let judged = self.ports.iter().try_fold(0, |sum, port| Ok(sum + port.judge_flows()?))?;
        // One that a timer moves meanwhile may be visited twice.
        if judged < self.crowd.connections {
            return Err(wrong(format!("{judged} connections came under the policy")));
        }
        Ok(())
    }

    /// ACKs of the guests.
    pub fn send(&self, segments: u32) -> Result<()> {
        self.crowd.probe(segments)
    }

    /// The guests reset all connections.
    pub fn reset(&self) -> Result<()> {
        self.crowd.reset()
    }

    pub fn connections(&self) -> Result<u32> {
        Ok(self.host.connections()?.0)
    }

    /// For how many microseconds timers have held a CPU at most, and how often it was more than a
    /// thousand.
    pub fn held(&self) -> Result<(u32, u32)> {
        self.host.held_by_timers()
    }
}

fn rules() -> Result<Policy> {
    Ok(Policy::parse(POLICY, "policy").map_err(|e| wrong(e.to_string()))?.policy)
}

fn affiliations(ports: usize) -> Vec<(u32, Affiliation<'static>)> {
    (0..ports as u32).map(|index| (index, Affiliation::default())).collect()
}
