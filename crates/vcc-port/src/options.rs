//! The options of an attachment.

use vcc_engine::Params;
use vcc_policy::PortSelector;

#[derive(Clone, Debug, PartialEq)]
pub struct AttachOptions {
    /// The treatment of all connections. Under a policy, their rules take its place. `emit`
    /// requires an [`crate::Emitter`].
    pub params: Params,
    /// How many connections the port tracks at a time; more pass untouched.
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
