//! Which of the host's devices are ports, and whose.

use glob::Pattern;

#[derive(Clone, Debug)]
pub struct PortSelector {
    pub(crate) device: Pattern,
    pub(crate) tenant: Option<String>,
    pub(crate) max_flows: u32,
}

impl PortSelector {
    /// Of a port that is attached by hand too.
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
