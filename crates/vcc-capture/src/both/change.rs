//! Changes that docs/translation.md names, and those that a device between the two captures makes.

use std::collections::BTreeMap;

/// What a segment has behind the port, and had not in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    WindowLowered,
    WindowRaised,
    /// The scales are unknown, because the handshake is in neither file.
    WindowUnscaled,
    Scale {
        from: u16,
        to: u16,
    },
    Mss {
        from: u16,
        to: u16,
    },
    EctSet,
    EctCleared,
    EctChanged,
    CeCleared,
    EceAdded,
    EceRemoved,
    CwrAdded,
    CwrRemoved,
    AeAdded,
    AeRemoved,
    PshAdded,
    PshRemoved,
    OptionAdded {
        kind: u8,
    },
    OptionRemoved {
        kind: u8,
    },
    /// By a queue.
    CeSet,
    /// TTL or hop limit, by a router.
    Hops,
}

/// How often each change was made.
pub type Changes = BTreeMap<Change, u64>;

impl Change {
    /// For JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::WindowLowered => "window_lowered",
            Self::WindowRaised => "window_raised",
            Self::WindowUnscaled => "window_unscaled",
            Self::Scale { .. } => "scale",
            Self::Mss { .. } => "mss",
            Self::EctSet => "ect_set",
            Self::EctCleared => "ect_cleared",
            Self::EctChanged => "ect_changed",
            Self::CeCleared => "ce_cleared",
            Self::EceAdded => "ece_added",
            Self::EceRemoved => "ece_removed",
            Self::CwrAdded => "cwr_added",
            Self::CwrRemoved => "cwr_removed",
            Self::AeAdded => "ae_added",
            Self::AeRemoved => "ae_removed",
            Self::PshAdded => "psh_added",
            Self::PshRemoved => "psh_removed",
            Self::OptionAdded { .. } => "option_added",
            Self::OptionRemoved { .. } => "option_removed",
            Self::CeSet => "ce_set",
            Self::Hops => "hops",
        }
    }

    /// Is it one of vcc's?
    pub fn is_of_vcc(self) -> bool {
        !matches!(self, Self::CeSet | Self::Hops)
    }

    /// Numbers before and behind it.
    pub fn values(self) -> Option<(u16, u16)> {
        match self {
            Self::Scale { from, to } | Self::Mss { from, to } => Some((from, to)),
            _ => None,
        }
    }

    /// The kind of the option that was added or removed.
    pub fn kind(self) -> Option<u8> {
        match self {
            Self::OptionAdded { kind } | Self::OptionRemoved { kind } => Some(kind),
            _ => None,
        }
    }
}
