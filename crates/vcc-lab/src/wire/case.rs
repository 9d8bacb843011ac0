//! One case, ready to be run.

use super::traffic::Demand;
use crate::scenario::Translation;
use std::collections::BTreeMap;
use vcc_results::report::Expectation;

#[derive(Debug, Clone)]
pub struct Case {
    pub name: String,
    pub flows: usize,
    pub demand: Demand,
    pub without: Treatment,
    pub with: Treatment,
    pub expect: BTreeMap<String, Expectation>,
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
