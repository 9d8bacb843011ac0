//! From a case to its scenario: everything that a run needs, as plain data.

use super::file::{Background, Core, Group, SchedulerKind, Vcpu};
use super::resolve::Parameters;
use super::{Case, NetworkKind};
use crate::base::error::Result;
use crate::experiment::Experiment;
use crate::experiment::bounded::{IntervalUs, ModerationUs, Ms, Percent};
use crate::experiment::problem::{Problem, Step, field};
use crate::scenario::{
    self, Chaos, Family, Guest, HostForm, Limits, Receivers, Scenario, Scheduler, Share,
};
use crate::translation::{Vcc, VccMode, translation};
use vcc_fabric::Watch;
use vcc_results::result::{Schedule, Stack};

const NS_PER_US: u64 = 1000;
const NS_PER_MS: u64 = 1_000_000;

impl Experiment<NetworkKind> {
    /// Fails where vcc does not have the underlay or the options that the case wants. `kernel_name`
    /// is what this machine calls a congestion control.
    pub fn scenario(
        &self,
        case: &Case,
        schedule: &Schedule,
        stack: Stack,
        kernel_name: &dyn Fn(&str) -> String,
    ) -> Result<Scenario> {
        let (own, tables) = (&case.parameters, &self.kind.tables);
        let observe = &tables.observe;
        let us = |interval: Option<IntervalUs>| interval.map(IntervalUs::get);
        let mut guests = Vec::new();
        for group in &own.groups {
            self.check_proxy(case, group)?;
            let place = field!["cases", case.entry, "guests", &group.name, "vcc"];
            let guest = Guest {
                ecn: group.ecn,
                accecn: group.accecn,
                tso: group.tso,
                small_queues: group.small_queues,
                congestion_control: kernel_name(&group.congestion_control),
                limits: limits(group),
                tcp: match stack {
                    Stack::NewReno => group.tcp.or(group.newreno),
                    Stack::Modern => group.tcp,
                },
                proxy: group.proxy.as_deref().map(kernel_name),
                ping_every_us: us(group.ping_every_us),
                interrupt_every_ns: interrupt_every_ns(group.interrupt_us),
                serves_at_once: group.serves_at_once.map(|most| most.get()),
                vcpu: vcpu(own, group.vcpu.as_ref()),
                cheat: group.cheat,
                translation: self.translation(&group.vcc, place)?,
            };
            guests.extend((0..group.count.get()).map(|_| guest.clone()));
        }
        let cores = cores(own, &mut guests);
        let place = field!["cases", case.entry, "receivers", "vcc"];
        Ok(Scenario {
            network: own.network.clone(),
            form: tables.hosts,
            family: tables.family,
            sack: stack == Stack::Modern,
            guests,
            flows: own.flows.clone(),
            requests: own.requests.clone(),
            cores,
            receivers: Receivers {
                ecn: own.receivers.ecn,
                accecn: own.receivers.accecn,
                interrupt_every_ns: interrupt_every_ns(own.receivers.interrupt_us),
                receive_buffer_bytes: own.receivers.receive_buffer_kib.map(|kib| kib.get() << 10),
                backlog_segs: own.receivers.backlog_segs.map_or(0, |segs| segs.get()),
                vcpu: vcpu(own, own.receivers.vcpu.as_ref()),
                translation: self.translation(&own.receivers.vcc, place)?,
            },
            warm_up_ns: (schedule.warm_up_s * 1e9) as u64,
            measured_ns: (schedule.measured_s * 1e9) as u64,
            phases: self.kind.phases,
            window_every_us: us(observe.windows_every_us),
            goodput_every_us: us(observe.goodput_every_us),
            watch: Watch {
                queue_every_us: us(observe.queue_every_us),
                probe_every_us: us(observe.probe_every_us),
                ack_gaps: observe.ack_gaps,
            },
            goodput_floor: own.goodput_floor,
            ring_overflows: own.ring_overflows,
            chaos: Chaos::default(),
        })
    }

    /// A proxy stands where vcc would, between a port and an uplink.
    fn check_proxy(&self, case: &Case, group: &Group) -> Result<()> {
        let text = match &group.proxy {
            None => return Ok(()),
            Some(_) if self.kind.tables.hosts != HostForm::Veth => "needs hosts of the form 'veth'",
            Some(_) if self.kind.tables.family != Family::Ipv4 => "needs IPv4",
            Some(_) if group.vcc.mode != VccMode::Off => "excludes vcc: choose one of them",
            Some(_) if limits(group).has_route() || group.rto_min_ms.is_some() => {
                "excludes cwnd_clamp_segs, initial_window_segs and rto_min_ms: the proxy is the only hop \
                 of the guest's route"
            }
            Some(name)
                if case
                    .parameters
                    .groups
                    .iter()
                    .any(|it| it.proxy.as_ref().is_some_and(|o| o != name)) =>
            {
                "must be the same for all proxies: they share one hypervisor"
            }
            Some(_) => return Ok(()),
        };
        let place = field!["cases", case.entry, "guests", &group.name, "proxy"];
        Err(self.source.error(Problem::new(place, text)))
    }

    fn translation(
        &self,
        vcc: &Vcc,
        mut place: Vec<Step>,
    ) -> Result<Option<scenario::Translation>> {
        translation(vcc, &self.kind.tables.pools).map_err(|(field, text)| {
            place.push(field.into());
            self.source.error(Problem::new(place, text))
        })
    }
}

/// The case's cores, and behind them one for each further guest on a core that is per guest.
fn cores(case: &Parameters, guests: &mut [Guest]) -> Vec<scenario::Core> {
    let mut cores: Vec<scenario::Core> = case.cores.values().map(core).collect();
    let mut taken = vec![false; cores.len()];
    let per_guest: Vec<bool> = case.cores.values().map(|core| core.per_guest).collect();
    for vcpu in guests.iter_mut().filter_map(|guest| guest.vcpu.as_mut()) {
        let number = vcpu.core;
        if per_guest[number] && std::mem::replace(&mut taken[number], true) {
            vcpu.core = cores.len();
            cores.push(cores[number].clone());
        }
    }
    cores
}

fn core(core: &Core) -> scenario::Core {
    let slice_ns = u64::from(core.slice_ms.get()) * NS_PER_MS;
    let background = core.background.iter().flat_map(|background: &Background| {
        let share = share(background.load_percent, background.load_period_ms);
        (0..background.count.get()).map(move |_| share)
    });
    scenario::Core {
        scheduler: match core.scheduler {
            SchedulerKind::RoundRobin => Scheduler::RoundRobin { slice_ns },
            SchedulerKind::Credit => {
                Scheduler::Credit { slice_ns, spare_cores: core.spare_cores.get() }
            }
        },
        background: background.collect(),
        wakeup_ns: core.wakeup_us.get() * NS_PER_US,
        driver_ns: core.driver_us.map(|us| us.get() * NS_PER_US),
    }
}

fn vcpu(case: &Parameters, vcpu: Option<&Vcpu>) -> Option<scenario::Vcpu> {
    let vcpu = vcpu?;
    let core = case.cores.keys().position(|name| *name == vcpu.core)?;
    Some(scenario::Vcpu { core, load: share(vcpu.load_percent, vcpu.load_period_ms) })
}

fn interrupt_every_ns(interval: Option<ModerationUs>) -> Option<u64> {
    interval.map(|interval| interval.get() * NS_PER_US)
}

fn share(percent: Percent, period_ms: Ms) -> Share {
    Share { percent: percent.get(), period_ns: u64::from(period_ms.get()) * NS_PER_MS }
}

fn limits(group: &Group) -> Limits {
    Limits {
        rate_bps: group.rate_limit_mbps.map(|rate| (rate.get() * 1e6) as u64),
        cwnd_segs: group.cwnd_clamp_segs.map(|segs| segs.get()),
        initial_segs: group.initial_window_segs.map(|segs| segs.get()),
        rto_min_ms: group.rto_min_ms.map(|ms| ms.get()),
    }
}
