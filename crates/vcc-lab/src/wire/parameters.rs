//! What a run must know of its case.

use super::traffic::Demand;
use crate::scenario::Translation;

#[derive(Debug, Clone)]
pub struct Parameters {
    pub flows: usize,
    pub demand: Demand,
    pub without: Treatment,
    pub with: Treatment,
}

#[derive(Debug, Clone)]
pub struct Treatment {
    pub sender: End,
    pub receiver: End,
    pub rate_limit_bps: Option<u64>,
    /// The congestion control of a TCP proxy in the way.
    pub proxy: Option<String>,
}

#[derive(Debug, Clone)]
pub struct End {
    pub ecn: bool,
    pub translation: Option<Translation>,
}
