//! What is wrong with a message.

use std::fmt;

/// A message that is invalid, by its first wrong field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message whose {field} is {value:#x}")]
pub struct Bad {
    pub field: Field,
    pub value: u64,
}

impl Bad {
    pub(crate) fn new(field: Field, value: impl Into<u64>) -> Self {
        Bad { field, value: value.into() }
    }
}

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Magic,
    Version,
    /// Unknown, or of the other end's messages.
    Kind,
    /// Address or port, in a message about no flow.
    Flow,
    Grant,
    Lease,
    Reserved,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Magic => "magic",
            Self::Version => "version",
            Self::Kind => "kind",
            Self::Flow => "flow",
            Self::Grant => "grant_bytes",
            Self::Lease => "lease_ms",
            Self::Reserved => "reserved part",
        })
    }
}
