//! The host's ports, and their tenants.

use glob::Pattern;
use vcc_engine::BufferPolicy;

use crate::affiliation::Affiliation;
use crate::keys::Kind;
use crate::problem::Span;
use crate::tunnels::Tunnels;

/// The range of `max_flows`.
pub const MAX_FLOWS: Kind = Kind::Count { min: 1, max: 1 << 24 };
/// The range of `buffer`.
pub const BUFFER: Kind = Kind::Size { min: 64 << 10, max: 1 << 30 };
/// The values of `buffer_policy`.
pub const BUFFER_POLICY: Kind = Kind::Name {
    noun: "a policy for the buffer",
    values: || BufferPolicy::ALL.iter().map(|it| (it.name(), it.number().into())).collect(),
};

/// The pattern that matches one name alone.
pub fn pattern_of(name: &str) -> String {
    Pattern::escape(name)
}

/// The values of `order`.
pub const ORDER: Kind = Kind::Name {
    noun: "a place in a chain",
    values: || Order::ALL.iter().map(|it| (it.name(), *it as u32)).collect(),
};

/// The place of a port's programs among those at the same hook, when it is attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Behind those that are there: they see a segment first, and may end the chain.
    #[default]
    Last,
    /// Before those that are there.
    First,
}

impl Order {
    pub const ALL: [Self; 2] = [Self::Last, Self::First];

    pub fn name(self) -> &'static str {
        match self {
            Self::Last => "last",
            Self::First => "first",
        }
    }

    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|it| *it as u32 == number)
    }
}

/// Ports that a `[[ports]]` of the file names.
#[derive(Clone, Debug)]
pub struct PortSelector {
    pub(crate) at: PortPattern,
    /// The place of the pattern in the file.
    pub(crate) span: Span,
    pub(crate) tenant: Option<String>,
    pub(crate) class: Option<String>,
    pub(crate) guest: Option<String>,
    pub(crate) max_flows: u32,
    pub(crate) inside: Tunnels,
    pub(crate) order: Order,
}

#[derive(Clone, Debug)]
pub(crate) enum PortPattern {
    /// Names of devices: ports in the kernel.
    Device(Pattern),
    /// Names of devices that `vcc domain --device` serves.
    Detour(Pattern, PortBuffer),
    /// Paths of sockets: ports of `vcc domain --socket`.
    Socket(Pattern, PortBuffer),
}

impl PortPattern {
    pub(crate) fn glob(&self) -> &Pattern {
        match self {
            Self::Device(glob) | Self::Detour(glob, _) | Self::Socket(glob, _) => glob,
        }
    }

    pub(crate) fn is_of_devices(&self) -> bool {
        !matches!(self, Self::Socket(..))
    }
}

/// The buffer of a port, and how its connections share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortBuffer {
    pub size_bytes: u32,
    pub policy: BufferPolicy,
}

impl Default for PortBuffer {
    /// vFlood's buffer for each virtual machine (3.3).
    fn default() -> Self {
        Self { size_bytes: 4 << 20, policy: BufferPolicy::Fair }
    }
}

impl PortSelector {
    pub const DEFAULT_MAX_FLOWS: u32 = 65_536;

    /// In the kernel or in front of a detour.
    pub(crate) fn matches_device(&self, device: &str) -> bool {
        self.at.is_of_devices() && self.at.glob().matches(device)
    }

    pub(crate) fn matches_socket(&self, path: &str) -> bool {
        !self.at.is_of_devices() && self.at.glob().matches(path)
    }

    /// Names this device, and not by a pattern that matches others as well.
    pub fn names(&self, device: &str) -> bool {
        self.pattern() == device || self.pattern() == pattern_of(device)
    }

    /// The pattern of devices or sockets.
    pub fn pattern(&self) -> &str {
        self.at.glob().as_str()
    }

    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    pub fn affiliation(&self) -> Affiliation<'_> {
        Affiliation { tenant: self.tenant.as_deref(), class: self.class.as_deref() }
    }

    /// The name of the guest whose devices these are, which are one port; None: each is a guest's.
    pub fn guest(&self) -> Option<&str> {
        self.guest.as_deref()
    }

    /// Connections that the port tracks at a time.
    pub fn max_flows(&self) -> u32 {
        self.max_flows
    }

    /// The tunnels whose inner connections the port translates.
    pub fn inside(&self) -> Tunnels {
        self.inside
    }

    /// Where its programs are attached among those of others.
    pub fn order(&self) -> Order {
        self.order
    }

    /// None at a port in the kernel, which has none.
    pub fn buffer(&self) -> Option<PortBuffer> {
        match self.at {
            PortPattern::Device(_) => None,
            PortPattern::Detour(_, buffer) | PortPattern::Socket(_, buffer) => Some(buffer),
        }
    }
}
