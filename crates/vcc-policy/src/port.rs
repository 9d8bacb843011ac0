//! The host's devices that are ports, and their tenants.

use glob::Pattern;

use crate::keys::Kind;

/// The range of `max_flows`.
pub const MAX_FLOWS: Kind = Kind::Count { min: 1, max: 1 << 24 };

#[derive(Clone, Debug)]
pub struct PortSelector {
    pub(crate) device: Pattern,
    pub(crate) tenant: Option<String>,
    pub(crate) max_flows: u32,
}

impl PortSelector {
    pub const DEFAULT_MAX_FLOWS: u32 = 65_536;

    pub fn matches(&self, device: &str) -> bool {
        self.device.matches(device)
    }

    /// The pattern of device names.
    pub fn device(&self) -> &str {
        self.device.as_str()
    }

    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// Connections that the port tracks at a time.
    pub fn max_flows(&self) -> u32 {
        self.max_flows
    }
}
