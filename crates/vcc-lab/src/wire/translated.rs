//! vcc on the ports of the two guests, and the check that it translates their flows.

use super::devices::{Place, Wire};
use crate::base::error::{Error, Result};
use crate::scenario::Translation;
use std::fmt::Display;
use vcc_engine::sys;
use vcc_port::{AttachOptions, Counter, Flow, Port, RunTime, RunTimes, counters};

/// Counters of segments that were not translated.
const PASSED_BY: [Counter; 3] = [counters::UNKNOWN, counters::TABLE_FULL, counters::REWRITE_FAILED];

/// One number for each of them.
pub type PassedBy = [u64; PASSED_BY.len()];

/// The ports that vcc is attached to; dropping them detaches it.
pub struct Attached {
    ports: Vec<(Place, Port)>,
}

impl Attached {
    pub fn attach(wire: &Wire, translations: [(Place, Option<&Translation>); 2]) -> Result<Self> {
        let wanted = translations.into_iter().filter_map(|(place, it)| Some((place, it?)));
        let attach = |(place, translation): (Place, &Translation)| {
            // The default `max_flows` is large enough, since flows are read seldom.
            let options = AttachOptions::from_params(translation.params);
            let port = wire.hypervisor().inside(|| {
                Port::attach(place.port(), &options).map_err(|error| trouble(place, error))
            })?;
            Ok((place, port))
        };
        Ok(Self { ports: wanted.map(attach).collect::<Result<_>>()? })
    }

    /// Counts run times until it is dropped, which costs as much as a tenth of a program. None without
    /// vcc.
    pub fn count_run_times(&self) -> Result<Option<RunTimes>> {
        let counting = self
            .ports
            .first()
            .map(|(place, _)| RunTimes::count().map_err(|error| trouble(*place, error)));
        counting.transpose()
    }

    /// Run time of vcc's programs at all ports while it was counted.
    pub fn run_time(&self) -> Result<RunTime> {
        self.ports.iter().try_fold(RunTime::default(), |sum, (place, port)| {
            Ok(sum + port.run_time().map_err(|error| trouble(*place, error))?)
        })
    }

    /// Segments that were not translated so far, of each port.
    pub fn passed_by(&self) -> Result<Vec<PassedBy>> {
        let of_port = |(place, port): &(Place, Port)| {
            let counted = port.counters().map_err(|error| trouble(*place, error))?;
            Ok(PASSED_BY.map(|counter| counted.get(counter)))
        };
        self.ports.iter().map(of_port).collect()
    }

    /// Reasons why the measured cost is not that of translating `flows` flows; empty if it is.
    /// `before` was read when measuring began: the ends of connections from before the attachment
    /// may come later than it.
    pub fn doubts(&self, flows: usize, before: &[PassedBy]) -> Result<Vec<String>> {
        let mut doubts = Vec::new();
        let after = self.passed_by()?;
        for (index, (place, port)) in self.ports.iter().enumerate() {
            let seen = port.flows().map_err(|error| trouble(*place, error))?;
            let with_feedback = self.ports.len() == Place::BOTH.len();
            doubts.extend(doubts_of_flows(&seen, flows, with_feedback, place.name()));
            for (number, counter) in PASSED_BY.into_iter().enumerate() {
                let segments = after[index][number] - before[index][number];
                if segments > 0 {
                    let (place, meaning) = (place.name(), counter.meaning);
                    doubts.push(format!("{segments} segments at {place}'s port {meaning}"));
                }
            }
        }
        Ok(doubts)
    }
}

fn doubts_of_flows(seen: &[Flow], flows: usize, with_feedback: bool, place: &str) -> Vec<String> {
    type Has = fn(&Flow) -> bool;
    let is_translated: Has = |flow| flow.state.is_managed();
    let has_ecn: Has = |flow| flow.state.has(sys::FLOW_ECN_FABRIC);
    let has_feedback: Has =
        |flow| flow.state.has(sys::FLOW_FEEDBACK) && !flow.state.has(sys::FLOW_FEEDBACK_LOST);
    let mut wanted = vec![("translated", is_translated), ("with ECN in the fabric", has_ecn)];
    if with_feedback {
        wanted.push(("with feedback from the other end", has_feedback));
    }
    let doubt = |(what, has): (&str, Has)| {
        let count = seen.iter().filter(|flow| has(flow)).count();
        (count != flows).then(|| format!("{count} of {flows} flows at {place}'s port are {what}"))
    };
    wanted.into_iter().filter_map(doubt).collect()
}

fn trouble(place: Place, problem: impl Display) -> Error {
    Error::Attach { host: place.name().into(), problem: problem.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vcc_engine::FlowState;

    fn flow(stage: sys::vcc_stage, flags: sys::vcc_flow_flag) -> Flow {
        let state = FlowState(sys::vcc_flow {
            stage: stage as u8,
            flags,
            underlay: vcc_engine::Underlay::default().number(),
            ..Default::default()
        });
        let address = "192.0.2.1:1".parse().unwrap();
        Flow { guest: address, peer: address, vlan: None, inside: false, state }
    }

    #[test]
    fn every_flow_must_be_translated_with_ecn_and_feedback() {
        let (ecn, feedback) = (sys::FLOW_ECN_FABRIC, sys::FLOW_FEEDBACK);
        let good = flow(sys::STAGE_ESTABLISHED, ecn | feedback);
        let bad = |flow: Flow, with_feedback| {
            doubts_of_flows(&[good.clone(), flow], 2, with_feedback, "here").len()
        };
        assert_eq!(bad(good.clone(), true), 0);
        assert_eq!(bad(flow(sys::STAGE_SYN_SENT, ecn | feedback), true), 1);
        assert_eq!(bad(flow(sys::STAGE_ESTABLISHED, ecn), true), 1);
        assert_eq!(bad(flow(sys::STAGE_ESTABLISHED, ecn), false), 0);
        let lost = ecn | feedback | sys::FLOW_FEEDBACK_LOST;
        assert_eq!(bad(flow(sys::STAGE_ESTABLISHED, lost), true), 1);
        assert_eq!(doubts_of_flows(&[good], 2, true, "here").len(), 3);
    }
}
