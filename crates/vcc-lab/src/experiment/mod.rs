//! Experiments: what a file says, checked and resolved into cases.

pub mod cases;
mod change;
mod check;
pub mod document;
mod duration;
mod file;
mod flows;
pub mod locate;
mod matrix;
mod overlay;
pub mod problem;
mod requests;
mod resolve;
mod translation;

pub use duration::Duration;
pub use file::{Bytes, Ms, Vcc};
pub use resolve::Case;
pub use translation::translation;

use crate::base::error::Result;
use crate::scenario::{
    self, Chaos, Family, Guest, HostForm, Limits, Receivers, Scenario, Scheduler, Share,
};
use file::{
    Background, Core, File, Group, IntervalUs, ModerationUs, Percent, SchedulerKind, VccMode, Vcpu,
};
use locate::Source;
use problem::{Problem, Step, field};
use vcc_fabric::Watch;
use vcc_results::measure::MetricSpec;
use vcc_results::report::{Headline, InShort, Placed, Plot};
use vcc_results::result::{Backend, Schedule, Stack};

const NS_PER_US: u64 = 1000;
const NS_PER_MS: u64 = 1_000_000;

/// One artefact of a paper: how to measure it, and what the paper measured.
#[derive(Debug, Clone)]
pub struct Experiment {
    source: Source,
    file: File,
    cases: Vec<Case>,
}

pub fn parse(name: &str, text: &str) -> Result<Experiment> {
    let source = Source::new(name, text);
    let read = || -> std::result::Result<_, Problem> {
        let document = source.document()?;
        let file: File = document.read()?;
        check::check(&file)?;
        let cases = resolve::cases(&file, &document)?;
        check::check_headline(&file, &cases)?;
        check::check_in_short(&file, &cases)?;
        Ok((file, cases))
    };
    let (file, cases) = read().map_err(|problem| source.error(problem))?;
    Ok(Experiment { source, file, cases })
}

impl Experiment {
    pub fn id(&self) -> &str {
        &self.file.id
    }

    pub fn title(&self) -> &str {
        &self.file.title
    }

    pub fn paper(&self) -> &str {
        &self.file.paper
    }

    pub fn scale(&self) -> Option<&str> {
        self.file.scale.as_deref()
    }

    pub fn claim(&self) -> Option<&str> {
        self.file.claim.as_deref()
    }

    pub fn headline(&self) -> Option<&Headline> {
        self.file.headline.as_ref()
    }

    pub fn stack(&self) -> Stack {
        self.file.stack
    }

    pub fn backend(&self) -> Backend {
        self.file.backend
    }

    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    pub fn metrics(&self) -> &[MetricSpec] {
        &self.file.metrics
    }

    pub fn plot(&self) -> &Plot {
        &self.file.plot
    }

    /// The case's place in the figure.
    pub fn placed(&self, case: &Case) -> Placed {
        let senders = self.file.flow_groups().enumerate().map(|(number, group)| {
            let own = case.flows.iter().filter(|flow| flow.group == number);
            (group.to_owned(), own.map(|flow| flow.sender).collect())
        });
        Placed {
            x: case.x,
            series: case.series.clone(),
            panel: case.panel.clone(),
            senders: senders.collect(),
        }
    }

    pub fn in_short(&self) -> Option<&InShort> {
        self.file.in_short.as_ref()
    }

    /// Names of the groups of flows, in the order of [`Case`]'s numbers for them.
    pub fn groups(&self) -> Vec<&str> {
        self.file.flow_groups().collect()
    }

    pub fn schedule(&self, quick: bool) -> Schedule {
        self.file.duration.schedule(quick)
    }

    /// Fails where vcc does not have the underlay or the options that the case wants. `kernel_name`
    /// is what this machine calls a congestion control.
    pub fn scenario(
        &self,
        case: &Case,
        schedule: &Schedule,
        stack: Stack,
        kernel_name: &dyn Fn(&str) -> String,
    ) -> Result<Scenario> {
        let observe = &self.file.observe;
        let us = |interval: Option<IntervalUs>| interval.map(IntervalUs::get);
        let mut guests = Vec::new();
        for group in &case.groups {
            self.check_proxy(case, group)?;
            let place = field!["cases", case.spec, "guests", &group.name, "vcc"];
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
                vcpu: vcpu(case, group.vcpu.as_ref()),
                cheat: group.cheat,
                translation: self.translation(&group.vcc, place)?,
            };
            guests.extend((0..group.count.get()).map(|_| guest.clone()));
        }
        let cores = cores(case, &mut guests);
        let place = field!["cases", case.spec, "receivers", "vcc"];
        Ok(Scenario {
            network: case.network.clone(),
            form: self.file.hosts,
            family: self.file.family,
            sack: stack == Stack::Modern,
            guests,
            flows: case.flows.clone(),
            requests: case.requests.clone(),
            cores,
            receivers: Receivers {
                ecn: case.receivers.ecn,
                accecn: case.receivers.accecn,
                interrupt_every_ns: interrupt_every_ns(case.receivers.interrupt_us),
                receive_buffer_bytes: case.receivers.receive_buffer_kib.map(|kib| kib.get() << 10),
                backlog_segs: case.receivers.backlog_segs.map_or(0, |segs| segs.get()),
                vcpu: vcpu(case, case.receivers.vcpu.as_ref()),
                translation: self.translation(&case.receivers.vcc, place)?,
            },
            warm_up_ns: (schedule.warm_up_s * 1e9) as u64,
            measured_ns: (schedule.measured_s * 1e9) as u64,
            phases: self.file.duration.phases.get(),
            window_every_us: us(observe.windows_every_us),
            goodput_every_us: us(observe.goodput_every_us),
            watch: Watch {
                queue_every_us: us(observe.queue_every_us),
                probe_every_us: us(observe.probe_every_us),
                ack_gaps: observe.ack_gaps,
            },
            goodput_floor: case.goodput_floor,
            ring_overflows: case.ring_overflows,
            chaos: Chaos::default(),
        })
    }

    /// A proxy stands where vcc would, between a port and an uplink.
    fn check_proxy(&self, case: &Case, group: &Group) -> Result<()> {
        let text = match &group.proxy {
            None => return Ok(()),
            Some(_) if self.file.hosts != HostForm::Veth => "needs hosts of the form 'veth'",
            Some(_) if self.file.family != Family::Ipv4 => "needs IPv4",
            Some(_) if group.vcc.mode != VccMode::Off => "excludes vcc: choose one of them",
            Some(_) if limits(group).has_route() || group.rto_min_ms.is_some() => {
                "excludes cwnd_clamp_segs, initial_window_segs and rto_min_ms: the proxy is the only hop \
                 of the guest's route"
            }
            Some(name)
                if case.groups.iter().any(|it| it.proxy.as_ref().is_some_and(|o| o != name)) =>
            {
                "must be the same for all proxies: they share one hypervisor"
            }
            Some(_) => return Ok(()),
        };
        let place = field!["cases", case.spec, "guests", &group.name, "proxy"];
        Err(self.source.error(Problem::new(place, text)))
    }

    fn translation(
        &self,
        vcc: &Vcc,
        mut place: Vec<Step>,
    ) -> Result<Option<scenario::Translation>> {
        translation(vcc, &self.file.pools).map_err(|(field, text)| {
            place.push(field.into());
            self.source.error(Problem::new(place, text))
        })
    }
}

/// The case's cores, and behind them one for each further guest on a core that is per guest.
fn cores(case: &Case, guests: &mut [Guest]) -> Vec<scenario::Core> {
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

fn vcpu(case: &Case, vcpu: Option<&Vcpu>) -> Option<scenario::Vcpu> {
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

#[cfg(test)]
mod tests;
