//! What an attachment shall do.

use vcc_engine::Treatment;
use vcc_policy::PortSelector;

#[derive(Clone, Debug, PartialEq)]
pub struct AttachOptions {
    /// Of all connections, or of none where each is treated by its rule. `emit` takes an
    /// [`crate::Emitter`].
    pub treatment: Treatment,
    /// Connections that this port tracks at a time; those beyond pass untouched.
    pub max_flows: u32,
}

impl AttachOptions {
    /// With as much room for connections as by default.
    pub fn of(treatment: Treatment) -> Self {
        Self { treatment, max_flows: PortSelector::DEFAULT_MAX_FLOWS }
    }
}

impl Default for AttachOptions {
    fn default() -> Self {
        Self::of(Treatment::default())
    }
}
