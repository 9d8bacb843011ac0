//! One port, and its flows.

use std::sync::Arc;

use serde::Serialize;
use vcc_domain::{BufferShare, Seen, Status};
use vcc_engine::{Delays, Histogram, Mode, Params};
use vcc_port::{Error, Flow, Port, RunTimeByDirection, counters};

use crate::cost::{Cost, Work};
use crate::cpu::GuestCpu;
use crate::domain::{self, DomainPort};
use crate::flow::{FlowView, Place};
use crate::rule::{RulesInForce, mode_name, underlay_name};
use crate::source::Source;
use crate::sums::Sums;

/// In place of what differs among the flows of a port.
const BY_RULE: &str = "by rule";

/// Segments that were not translated, for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct Counter {
    pub name: &'static str,
    pub meaning: &'static str,
    pub value: u64,
}

#[derive(Clone, Debug)]
pub struct PortView {
    /// The device.
    pub port: String,
    pub tenant: Option<Arc<str>>,
    /// Among the policy's ports; None at a port that was attached by hand.
    pub index: Option<u32>,
    /// The other devices of its guest, with which it is one port.
    pub same_guest_as: Option<String>,
    /// The device among these that has the port's counters; None at that device.
    pub shown_at: Option<String>,
    pub underlay: Option<String>,
    pub mode: Option<String>,
    pub max_flows: Option<u32>,
    /// Kept in its buffer; None at a port in the kernel, which has none.
    pub held_bytes: Option<u64>,
    /// Acknowledged in the name of peers or the guest; None likewise.
    pub promised_bytes: Option<u64>,
    /// Whether the guest's congestion control follows the port's channel: `up` or `down`.
    pub channel: Option<String>,
    pub channel_malformed: Option<u64>,
    /// The guest's; None unless it was watched.
    pub cpu: Option<GuestCpu>,
    /// Its own; None unless it was watched.
    pub cost: Option<Cost>,
    /// Of its programs, so far; None unless it was asked for, and the kernel has counted some.
    pub run_time: Option<RunTimeByDirection>,
    pub counters: Vec<Counter>,
    /// What their round trips waited for since it was attached; None if it cannot be read.
    pub delays: Option<Delays>,
    /// Of its connections.
    pub sums: Sums,
    /// Why it promises nothing, although its treatment may say so; None otherwise.
    pub unpromised: Option<String>,
    /// Why it could not be read: then the rest is unknown.
    pub failure: Option<String>,
}

impl PortView {
    /// Without sums. Of a port that was detached since it was listed, only that is known.
    pub fn read(port: &Source) -> Result<Self, Error> {
        match port {
            Source::Kernel(in_kernel) => match Self::of_kernel(in_kernel) {
                Err(error @ Error::NotAttached { .. }) => Ok(Self::unreadable(port, &error)),
                view => view,
            },
            Source::Domain(port) => Ok(Self::of_domain(port)),
        }
    }

    fn of_kernel(port: &Port) -> Result<Self, Error> {
        let params = port.params()?.0;
        let index = port.index()?;
        let is_ruled = index.is_some();
        let is_draining = params.mode == Mode::Drain.number();
        let shown_at = port.shown_at().map(str::to_owned);
        let is_shown = shown_at.is_none();
        let counters = is_shown.then(|| port.counters()).transpose()?;
        Ok(Self {
            index,
            same_guest_as: Some(port.others().join(", ")).filter(|others| !others.is_empty()),
            shown_at,
            underlay: Some(if is_ruled { BY_RULE.into() } else { underlay_name(params.underlay) }),
            mode: Some(if is_ruled && !is_draining {
                BY_RULE.into()
            } else {
                mode_name(params.mode)
            }),
            max_flows: Some(port.max_flows()?),
            counters: counters.iter().flat_map(|counters| counters.iter().map(counter)).collect(),
            delays: is_shown.then(|| port.delays()).transpose()?,
            ..Self::unknown(port.device())
        })
    }

    fn of_domain(port: &DomainPort) -> Self {
        let unknown = Self::unknown(&port.name);
        match &port.status {
            Err(failure) => Self { failure: Some(failure.clone()), ..unknown },
            Ok(status) => Self {
                underlay: Some(match status.epoch {
                    0 => underlay_name(status.params.0.underlay),
                    _ => BY_RULE.into(),
                }),
                mode: Some(match status.epoch {
                    0 => mode_name(status.params.0.mode),
                    _ => BY_RULE.into(),
                }),
                max_flows: Some(status.max_flows),
                held_bytes: Some(status.held_bytes.into()),
                promised_bytes: Some(promised_bytes(status)),
                channel: Some(status.channel.clone()).filter(|word| !word.is_empty()),
                channel_malformed: (!status.channel.is_empty()).then_some(status.channel_malformed),
                counters: counters::ALL
                    .into_iter()
                    .zip(status.counts.clone())
                    .map(counter)
                    .collect(),
                delays: Some(status.delays),
                unpromised: Some(status.unpromised.clone()).filter(|why| !why.is_empty()),
                ..unknown
            },
        }
    }

    pub fn unreadable(port: &Source, failure: &Error) -> Self {
        Self { failure: Some(failure.to_string()), ..Self::unknown(port.device()) }
    }

    fn unknown(port: &str) -> Self {
        Self {
            port: port.to_owned(),
            tenant: None,
            index: None,
            same_guest_as: None,
            shown_at: None,
            underlay: None,
            mode: None,
            max_flows: None,
            held_bytes: None,
            promised_bytes: None,
            channel: None,
            channel_malformed: None,
            cpu: None,
            cost: None,
            run_time: None,
            counters: Vec::new(),
            delays: None,
            sums: Sums::default(),
            unpromised: None,
            failure: None,
        }
    }

    /// What it does with frames of one direction; None if that is not known.
    pub fn work(&self, direction: fn(&Cost) -> Option<Work>) -> Option<Work> {
        self.cost.as_ref().and_then(direction)
    }

    /// Of one part of its delays, in whole us.
    pub fn quantile_us(&self, part: fn(&Delays) -> Histogram, share: f64) -> Option<u64> {
        self.delays.as_ref().and_then(|delays| part(delays).quantile_us(share)).map(|us| us as u64)
    }

    /// Of TCP.
    pub fn untranslated_segments(&self) -> Option<u64> {
        let is_tcp =
            |counter: &&Counter| counters::OTHER_TRAFFIC.iter().all(|it| it.name != counter.name);
        let segments = self.counters.iter().filter(is_tcp).map(|counter| counter.value);
        self.is_counted().then(|| segments.sum())
    }

    /// Those of connections that began before vcc was attached.
    pub fn unknown_segments(&self) -> Option<u64> {
        let unknown = self.counters.iter().find(|counter| counter.name == counters::UNKNOWN.name);
        unknown.filter(|_| self.is_counted()).map(|counter| counter.value)
    }

    /// False for an unreadable port, and where another device of the guest has the counters.
    pub fn is_counted(&self) -> bool {
        self.failure.is_none() && self.shown_at.is_none()
    }
}

fn promised_bytes(status: &Status) -> u64 {
    status.flows.iter().map(|flow| u64::from(flow.promised_bytes)).sum()
}

fn counter((counter, value): (vcc_port::Counter, u64)) -> Counter {
    Counter { name: counter.name, meaning: counter.meaning, value }
}

/// Makes views of a port's flows, without rates.
pub(crate) struct Viewer<'a> {
    place: &'a Place,
    params: Params,
    is_ruled: bool,
    now_us: u64,
}

impl<'a> Viewer<'a> {
    /// None if the port was detached since it was listed.
    pub(crate) fn open(port: &Source, place: &'a Place) -> Result<Option<Self>, Error> {
        let now_us = vcc_port::monotonic().as_micros() as u64;
        match port.params().and_then(|params| Ok((params, port.is_ruled()?))) {
            Ok((params, is_ruled)) => Ok(Some(Self { place, params, is_ruled, now_us })),
            Err(Error::NotAttached { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn view(
        &self,
        flow: &Flow,
        share: Option<BufferShare>,
        rules: &RulesInForce,
    ) -> FlowView {
        let rule = rules.rule_of(&flow.state).filter(|_| self.is_ruled);
        FlowView::new(self.place, flow, rule, &self.params, share, self.now_us)
    }

    /// The flows of a port in a process of `vcc domain`; none of another.
    pub(crate) fn of_domain(&self, port: &Source) -> Vec<FlowView> {
        let Source::Domain(port) = port else { return Vec::new() };
        let rules = port.rules().unwrap_or_default();
        let view = |seen: &Seen| FlowView {
            promised_bytes: Some(seen.promised_bytes.into()),
            ..self.view(&domain::flow(seen), Some(seen.share), &rules)
        };
        port.seen().iter().map(view).collect()
    }
}

/// The flows of a port, without rates; none of one that was detached since it was listed. `rules` are
/// those in the kernel, and so are `flows`: see [`Source::kernel_flows`].
pub fn view_flows(
    port: &Source,
    flows: &[Flow],
    place: &Place,
    rules: &RulesInForce,
) -> Result<Vec<FlowView>, Error> {
    let Some(viewer) = Viewer::open(port, place)? else { return Ok(Vec::new()) };
    match port {
        Source::Kernel(_) => Ok(flows.iter().map(|flow| viewer.view(flow, None, rules)).collect()),
        Source::Domain(_) => Ok(viewer.of_domain(port)),
    }
}

#[cfg(test)]
mod tests {
    use vcc_port::AttachOptions;
    use vcc_testing::{ip, on_a_host};

    use super::*;
    use crate::testing;

    #[test]
    fn what_is_not_tcp_is_not_untranslated() {
        let value = |counter: vcc_port::Counter| match counter {
            counters::NOT_IP => 1000,
            counters::NOT_TCP => 100,
            counters::UNKNOWN => 3,
            counters::POLICED => 2,
            _ => 0,
        };
        let all = counters::ALL.into_iter().map(|it| counter((it, value(it)))).collect();
        let port = PortView { counters: all, ..testing::port("veth3") };
        assert_eq!(port.untranslated_segments(), Some(5));
    }

    /// The next port has its index, and perhaps flows by then.
    #[test]
    fn a_port_that_was_detached_since_it_was_listed_is_no_error() {
        on_a_host(|| {
            let attach = |device| {
                ip(&format!("link add {device} type veth peer name {device}-guest"));
                Port::attach_pinned(&[device], &AttachOptions::default()).expect("attached");
            };
            attach("stays");
            attach("goes");
            let listed = Source::list().expect("a list");
            Port::open("goes").expect("a port").detach().expect("detached");
            attach("next");

            for port in &listed {
                let is_there = port.device() == "stays";
                let view = PortView::read(port).expect("no error");
                let expected = (!is_there).then(|| {
                    "vcc is not attached to `goes` (`vcc ports` lists where it is attached)"
                        .to_owned()
                });
                assert_eq!((view.failure, view.max_flows.is_some()), (expected, is_there));
                let place = Place { index: 0, key: "".into(), port: "".into(), tenant: None };
                let viewer = Viewer::open(port, &place).expect("no error");
                assert_eq!(viewer.is_some(), is_there);
                let flows = view_flows(port, &[], &place, &RulesInForce::default());
                assert!(flows.is_ok_and(|flows| flows.is_empty()));
            }
        });
    }
}
