//! Requests: what they weigh, and what a server asks of others to respond.

use crate::experiment::bounded::{Bytes, Calls};
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub request_bytes: Bytes,
    pub response_bytes: Bytes,
    /// One after the other, before the response.
    #[serde(default)]
    pub calls: Vec<Call>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The group of flows, whose senders are the servers.
    pub flows: String,
    /// One of the file's `requests`.
    pub request: String,
    #[serde(default)]
    pub count: Calls,
    /// The most of them without a response.
    #[serde(default)]
    pub at_once: Calls,
}
