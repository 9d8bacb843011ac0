//! Fields that vcc leaves alone.

use std::fmt;

/// Where two segments differ, although docs/translation.md names no such change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The first byte of payload that differs, from the beginning of the guest's side's payload.
    Payload {
        at: u32,
    },
    Sequence,
    Acknowledgement,
    Flags,
    Reserved,
    Window,
    Urgent,
    Option {
        kind: u8,
    },
    Dscp,
    FlowLabel,
    DontFragment,
    IpOptions,
}

impl Field {
    /// For JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Payload { .. } => "payload",
            Self::Sequence => "sequence",
            Self::Acknowledgement => "acknowledgement",
            Self::Flags => "flags",
            Self::Reserved => "reserved",
            Self::Window => "window",
            Self::Urgent => "urgent",
            Self::Option { .. } => "option",
            Self::Dscp => "dscp",
            Self::FlowLabel => "flow_label",
            Self::DontFragment => "dont_fragment",
            Self::IpOptions => "ip_options",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Payload { at } => write!(to, "byte {at} of the payload"),
            Self::Sequence => write!(to, "sequence number"),
            Self::Acknowledgement => write!(to, "acknowledgement number"),
            Self::Flags => write!(to, "flags"),
            Self::Reserved => write!(to, "reserved bits"),
            Self::Window => write!(to, "window"),
            Self::Urgent => write!(to, "urgent pointer"),
            Self::Option { kind } => write!(to, "TCP option {kind}"),
            Self::Dscp => write!(to, "DSCP"),
            Self::FlowLabel => write!(to, "flow label"),
            Self::DontFragment => write!(to, "DF"),
            Self::IpOptions => write!(to, "IP options"),
        }
    }
}
