//! The programs of the datapath.

use crate::tcx::Hook;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    FromGuest,
    ToGuest,
    /// Parses a frame and leaves it alone: the yardstick for [`Self::FromGuest`].
    ParseFromGuest,
    /// The yardstick for [`Self::ToGuest`].
    ParseToGuest,
    /// Visits all flows of a port, or lets its wheel turn. It ignores the frame that it runs on.
    Sweep,
    /// Does what a timer of the kernel would do. It ignores the frame that it runs on.
    Turn,
}

impl Program {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::FromGuest => Hook::FromGuest.program_name(),
            Self::ToGuest => Hook::ToGuest.program_name(),
            Self::ParseFromGuest => "parse_from_guest",
            Self::ParseToGuest => "parse_to_guest",
            Self::Sweep => "sweep",
            Self::Turn => "turn",
        }
    }
}

impl From<Hook> for Program {
    fn from(hook: Hook) -> Self {
        match hook {
            Hook::FromGuest => Self::FromGuest,
            Hook::ToGuest => Self::ToGuest,
        }
    }
}
