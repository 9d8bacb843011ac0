//! What the sender of a flow does.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Sends all that it can.
    #[default]
    Bulk,
    /// Sends one small message at a time, and waits for its echo.
    PingPong,
    /// Sends nothing on its connection.
    Idle,
}
