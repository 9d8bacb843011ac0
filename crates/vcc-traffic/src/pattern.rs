//! What the sender of a flow does.

use crate::workers::{Order, Pace, Size};
use serde::{Deserialize, Serialize};
use std::num::{NonZeroU32, NonZeroU64};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Sends all that it can.
    #[default]
    Bulk,
    /// Sends one small message at a time, and waits for its echo.
    PingPong,
    /// Sends messages when a worker says so, over one connection.
    Messages(Messages),
    /// Sends nothing on its connection.
    Idle,
    /// Sends one thing after another, each over a connection of its own.
    Transfers(Transfers),
}

/// What a worker sends over all of its flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Messages {
    pub size: Size,
    #[serde(default)]
    pub order: Order,
    pub pace: Pace,
}

/// The next begins when the receiver has ended the connection of the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfers {
    /// Of each.
    pub bytes: NonZeroU64,
    pub count: NonZeroU32,
}
