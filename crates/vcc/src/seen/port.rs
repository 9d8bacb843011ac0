//! One port, in a person's words.

use std::collections::BTreeMap;

use serde::Serialize;
use vcc_engine::{Mode, Params, Underlay};
use vcc_port::Port;

/// What stands where flows of one port differ.
const BY_RULE: &str = "by rule";

#[derive(Clone, Serialize)]
pub struct PortView {
    pub port: String,
    pub underlay: String,
    pub mode: String,
    pub flows: usize,
    pub max_flows: u32,
    pub counters: BTreeMap<&'static str, u64>,
    /// The counters that count, with what they mean.
    #[serde(skip)]
    pub meanings: Vec<(u64, &'static str)>,
}

impl PortView {
    /// Whether its flows are `ruled` by a policy, each by its own rule.
    pub fn new(
        port: &Port,
        params: &Params,
        ruled: bool,
        flows: usize,
    ) -> Result<Self, vcc_port::Error> {
        let params = params.0;
        let counters = port.counters()?;
        let named = |name: Option<String>, number: u8| name.unwrap_or_else(|| number.to_string());
        let underlay = Underlay::from_number(params.underlay).map(|underlay| underlay.to_string());
        let mode = Mode::from_number(params.mode).map(|mode| mode.to_string());
        Ok(Self {
            port: port.device().to_owned(),
            underlay: if ruled { BY_RULE.into() } else { named(underlay, params.underlay) },
            mode: if ruled && params.mode != Mode::Drain.number() {
                BY_RULE.into()
            } else {
                named(mode, params.mode)
            },
            flows,
            max_flows: port.max_flows()?,
            counters: counters.iter().map(|(counter, count)| (counter.name, count)).collect(),
            meanings: counters
                .iter()
                .filter(|(_, count)| *count > 0)
                .map(|(counter, count)| (count, counter.meaning))
                .collect(),
        })
    }
}
