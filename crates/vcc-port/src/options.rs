//! The options of an attachment.

use vcc_engine::Params;
use vcc_policy::PortSelector;

#[derive(Clone, Debug, PartialEq)]
pub struct AttachOptions {
    /// The treatment of all connections. Under a policy, their rules take its place. `emit`
    /// requires an [`crate::Emitter`].
    pub params: Params,
    /// The number of connections that the port tracks at a time; others pass untouched.
    pub max_flows: u32,
}

impl AttachOptions {
    /// With the default size of the flow table.
    pub fn of(params: Params) -> Self {
        Self { params, max_flows: PortSelector::DEFAULT_MAX_FLOWS }
    }
}

impl Default for AttachOptions {
    fn default() -> Self {
        Self::of(Params::default())
    }
}
