//! The tenants of ports, which the daemon's policy names.

use std::collections::HashMap;
use std::sync::Arc;

use vcc_policy::Policy;
use vcc_view::FlowView;

use super::policy;

/// Without a daemon, no port has one.
pub struct Tenants {
    policy: Option<Policy>,
    known: HashMap<String, Option<Arc<str>>>,
}

impl Tenants {
    /// By the policy that the daemon has in force now.
    pub fn ask() -> Self {
        let in_force = policy::daemon().policy().ok();
        let policy = in_force.and_then(|it| Policy::parse(&it.text, &it.file_name).ok());
        Self { policy: policy.map(|checked| checked.policy), known: HashMap::new() }
    }

    /// Of the port at a device.
    pub fn of_port(&mut self, device: &str) -> Option<Arc<str>> {
        let policy = self.policy.as_ref()?;
        if let Some(known) = self.known.get(device) {
            return known.clone();
        }
        // A port that was attached by hand has none.
        let tenant =
            policy::port_at(policy, device).ok().and_then(|port| port.tenant()).map(Arc::from);
        self.known.insert(device.to_owned(), tenant.clone());
        tenant
    }

    pub fn name(&mut self, flows: &mut [FlowView]) {
        flows.iter_mut().for_each(|flow| flow.tenant = self.of_port(&flow.port));
    }
}
