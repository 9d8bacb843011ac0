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
    /// Of other sizes than those that are listed.
    MssOther,
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

/// Distinct changes of the MSS in a list: a file could have a billion.
const MSS_LISTED_MAX: usize = 64;

/// Adds to the count of a change.
pub(crate) fn count(changes: &mut Changes, change: Change, count: u64) {
    let is_new_mss = matches!(change, Change::Mss { .. }) && !changes.contains_key(&change);
    let sizes = || changes.keys().filter(|it| matches!(it, Change::Mss { .. })).count();
    let is_listed = !is_new_mss || sizes() < MSS_LISTED_MAX;
    *changes.entry(if is_listed { change } else { Change::MssOther }).or_default() += count;
}

impl Change {
    /// For JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::WindowLowered => "window_lowered",
            Self::WindowRaised => "window_raised",
            Self::WindowUnscaled => "window_unscaled",
            Self::Scale { .. } => "scale",
            Self::Mss { .. } => "mss",
            Self::MssOther => "mss_other",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_sizes_is_bounded() {
        let mut changes = Changes::new();
        for from in 0..100 {
            count(&mut changes, Change::Mss { from, to: 500 }, 2);
        }
        count(&mut changes, Change::Mss { from: 7, to: 500 }, 1);
        count(&mut changes, Change::EctSet, 5);
        assert_eq!(changes.len(), MSS_LISTED_MAX + 2);
        assert_eq!(changes[&Change::Mss { from: 7, to: 500 }], 3);
        assert_eq!((changes[&Change::MssOther], changes[&Change::EctSet]), (72, 5));
    }
}
