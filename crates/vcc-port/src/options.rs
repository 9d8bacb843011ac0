//! The options of an attachment.

use vcc_engine::{Params, sys};
use vcc_policy::{Order, PortSelector, Tunnels};

#[derive(Clone, Debug, PartialEq)]
pub struct AttachOptions {
    /// The treatment of all connections. Under a policy, their rules take its place. `emit`
    /// requires an [`crate::Emitter`].
    pub params: Params,
    /// The number of connections that the port tracks at a time; others pass untouched.
    pub max_flows: u32,
    /// The tunnels whose inner connections are translated, too.
    pub inside: Tunnels,
    /// The place among the programs that are at the device.
    pub order: Order,
}

impl AttachOptions {
    /// With the default size of the flow table.
    pub fn from_params(params: Params) -> Self {
        let (inside, order) = (Tunnels::NONE, Order::default());
        Self { params, max_flows: PortSelector::DEFAULT_MAX_FLOWS, inside, order }
    }
}

impl AttachOptions {
    /// A port's settings for the datapath.
    pub(crate) fn port(&self, by_policy: bool) -> sys::vcc_port {
        sys::vcc_port {
            params: self.params.0,
            traced: sys::vcc_key::default(),
            flows_max: self.max_flows,
            by_policy: by_policy.into(),
            inside: self.inside.bits(),
            generation: 0,
            attached_s: 0,
        }
    }
}

impl Default for AttachOptions {
    fn default() -> Self {
        Self::from_params(Params::default())
    }
}
