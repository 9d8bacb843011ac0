//! A flow as other processes see it.

use vcc_engine::FlowState;

use crate::key::FlowKey;

/// A flow, and what the port has of it.
#[derive(Clone, Copy)]
pub struct Seen {
    pub key: FlowKey,
    pub state: FlowState,
    /// Of the port's buffer.
    pub held_bytes: u32,
    /// Acknowledged in another's name, and not yet by him.
    pub promised_bytes: u32,
}
