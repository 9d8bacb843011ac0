//! Runs an experiment with virtual machines: rounds of all cases, so that the machine's speed, which
//! drifts, affects all of them alike.

use super::card::{self, COMPUTE, Card};
use super::crowd::Crowd;
use super::experiment::Experiment;
use super::file::{Case, File};
use super::metrics::{self, Transfers};
use super::network::Network;
use super::transfer::{self, Direction, Terms, or_interrupted};
use super::turns::{self, Part, Slices};
use super::verdicts::Judge;
use crate::base::error::{Doing, Error, Result};
use crate::base::progress::{Event, Progress};
use crate::base::{interrupt, system};
use crate::options::RunOptions;
use crate::wire::meter::Reading;
use std::collections::BTreeMap;
use std::io;
use std::thread;
use std::time::{Duration, Instant};
use vcc_net::random::SplitMix64;
use vcc_qemu::{Image, Vm};
use vcc_results::measure::Validity;
use vcc_results::report::{CaseReport, Conditions, Figure, Report, RunReport, Study};
use vcc_results::result::{Backend, Schedule, Stack};
use vcc_vcpu::Shares;

/// Boot of a guest and making its network.
const OVERHEAD_S: f64 = 6.0;
/// The pause before a transfer is half to one and a half of this: any time of a round of turns.
const PAUSE_US: u64 = 100_000;
/// Transfers of a size and direction, even if they take longer than their time.
const LEAST_TRANSFERS: usize = 3;
/// Beyond this share, other processes may have taken a guest's turn.
const MOST_STRANGERS: f64 = 0.1;

/// The guests' kernel, as Debian has it.
pub const STACK: Stack = Stack::Modern;

/// All processes, namespaces and devices are gone on return, also after Ctrl-C.
pub fn run(
    experiment: &Experiment,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<Report> {
    system::require_root()?;
    let file = experiment.file();
    let cases = options.chosen(&file.id, &file.cases, |case| &case.name)?;
    card::check_programs(&cases)?;
    let _watch = interrupt::Watch::start()?;
    let _slices = Slices::set(file.machines.slice_ms.get())?;
    let image = Image::find_or_build().doing(|| "make the virtual machines' guest".into())?;
    let mut schedule = file.duration.schedule(options.quick);
    schedule.runs = options.runs.unwrap_or(schedule.runs);
    let network = Network::create(&file.machines)?;
    let mut neighbours = Vec::new();
    for _ in 0..file.machines.neighbours {
        let neighbour = or_interrupted(card::boot(&network.host, &image, &[]))?;
        neighbours.push(busy(neighbour).doing(|| "keep a virtual machine busy".into())?);
    }
    let mut runner = Runner { file, options, schedule, image, neighbours, progress };
    let runs = runner.rounds(&cases)?;
    let metrics = metrics::all(file);
    let study = Study {
        id: &file.id,
        title: &file.title,
        paper: &file.paper,
        scale: file.scale.as_deref(),
        metrics: metrics.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect(),
        in_short: None,
        conditions: Conditions {
            stack: STACK,
            backend: Backend::Live,
            quick: options.quick,
            seed: options.seed,
            schedule,
            full_schedule: file.duration.schedule(false),
        },
        complete: cases.len() == file.cases.len(),
    };
    let names: Vec<&str> = metrics.iter().map(|(name, _)| name.as_str()).collect();
    let reports = cases.iter().zip(runs).map(|(case, runs)| {
        CaseReport::from_runs(&case.name, schedule.runs, runs, &names, &case.expect)
    });
    let expected: Vec<_> = cases.iter().map(|case| &case.expect).collect();
    Ok(study
        .report(reports.collect(), &expected, |cases| Figure::by_case(cases, &file.machines.plot)))
}

struct Runner<'a> {
    file: &'a File,
    options: &'a RunOptions,
    schedule: Schedule,
    image: Image,
    /// They are stopped, but for their turns.
    neighbours: Vec<Vm>,
    progress: &'a mut dyn Progress,
}

impl Runner<'_> {
    /// The runs of each case.
    fn rounds(&mut self, cases: &[&Case]) -> Result<Vec<Vec<RunReport>>> {
        let mut runs: Vec<Vec<RunReport>> = cases.iter().map(|_| Vec::new()).collect();
        let each_s = self.schedule.measured_s + OVERHEAD_S;
        let mut left = cases.len() as u32 * self.schedule.runs;
        for run in 1..=self.schedule.runs {
            let mut round: BTreeMap<&str, BTreeMap<String, f64>> = BTreeMap::new();
            for (case, runs) in cases.iter().zip(&mut runs) {
                left -= 1;
                let later_s = f64::from(left) * each_s;
                let against = case.against.as_deref().and_then(|name| round.get(name));
                let measured = self.measure(case, run, later_s);
                let report = report(self.options.seed, or_interrupted(measured), against)?;
                round.insert(&case.name, report.metrics.clone());
                self.progress.note(&Event::Done {
                    case: &case.name,
                    run,
                    runs: self.schedule.runs,
                    valid: report.valid,
                    reasons: &report.reasons,
                    metrics: &report.metrics,
                });
                runs.push(report);
            }
        }
        Ok(runs)
    }

    /// One run of a case.
    fn measure(&mut self, case: &Case, run: u32, later_s: f64) -> Result<Measured> {
        let machines = &self.file.machines;
        let sizes = case.sizes.as_ref().unwrap_or(&machines.sizes);
        // A network of its own: nothing of another case is left in it.
        let mut network = Network::create(machines)?;
        let card = Card::connect(&network, case)?;
        let mut vm = card.boot(&network, &self.image, case, sizes)?;
        let (runs, seed) = (self.schedule.runs, self.options.seed.wrapping_add(run.into()));
        let kinds = metrics::kinds(self.file, case);
        let verdicts = machines.verdicts.as_ref();
        let terms = Terms {
            guest: card.guest_address(),
            asks: verdicts.map_or(0, |verdicts| verdicts.asks),
            peer_window_bytes: verdicts.map(|verdicts| verdicts.peer_window_bytes),
        };
        let mut judge = verdicts.map(|_| Judge::of(&network, &card)).transpose()?;
        let mut crowd = match case.queue_ms {
            0 => None,
            queue_ms => Some(Crowd::start(&network, machines.rate_mbps, queue_ms)?),
        };
        let each = Duration::from_secs_f64(self.schedule.measured_s / kinds.len() as f64);
        let progress = &mut *self.progress;
        let mut tick = |left_s: f64| {
            let left_s = left_s + later_s;
            progress.note(&Event::Tick { case: &case.name, run, runs, left_s, virtual_time: None });
        };
        if !case.alone {
            each_of(&self.neighbours, Vm::go_on)?;
        }
        let cpu = judge.as_ref().map(Judge::watch_cpu).transpose()?;
        let before = Reading::take()?;
        let mut random = SplitMix64::new(seed);
        let mut series = |(number, &(direction, bytes)): (usize, &(Direction, u32))| {
            tick((kinds.len() - number) as f64 * each.as_secs_f64());
            let mut times_s = Vec::new();
            let end = Instant::now() + each;
            while times_s.len() < LEAST_TRANSFERS || Instant::now() < end {
                let transfer = || one(direction, bytes, &mut vm, &terms, &mut random);
                times_s.push(network.peer.inside(transfer)?);
                judge.as_mut().map_or(Ok(()), Judge::look)?;
            }
            network.link.check()?;
            crowd.as_mut().map_or(Ok(()), Crowd::check)?;
            let verdicts = judge.as_mut().map(Judge::take).unwrap_or_default();
            Ok(Transfers { direction, bytes, times_s, verdicts })
        };
        let transfers = kinds.iter().enumerate().map(&mut series).collect::<Result<_>>();
        let cpu = cpu.map(|cpu| cpu.end()).transpose();
        let strangers = before.until(&Reading::take()?).strangers_share();
        if !case.alone {
            each_of(&self.neighbours, Vm::stop)?;
        }
        Ok(Measured { transfers: transfers?, cpu: cpu?, strangers })
    }
}

/// Of a run.
struct Measured {
    transfers: Vec<Transfers>,
    /// The guest's, if it was looked at.
    cpu: Option<Shares>,
    /// The share of other processes in the machine's CPU.
    strangers: f64,
}

fn each_of(machines: &[Vm], act: impl Fn(&Vm) -> io::Result<()>) -> Result<()> {
    machines.iter().try_for_each(act).doing(|| "stop or continue virtual machines".into())
}

/// A virtual machine that computes without end, and is stopped.
fn busy(mut vm: Vm) -> io::Result<Vm> {
    vm.run(COMPUTE)?;
    vm.stop()?;
    Ok(vm)
}

/// A transfer at any time of the others' turns. Runs in the peer's namespace.
fn one(
    direction: Direction,
    bytes: u32,
    vm: &mut Vm,
    terms: &Terms,
    random: &mut SplitMix64,
) -> Result<f64> {
    turns::place(0, Part::Peer).doing(|| "get real-time priority".into())?;
    or_interrupted(Ok(()))?;
    thread::sleep(Duration::from_micros(random.around(PAUSE_US)));
    transfer::run(direction, bytes, vm, terms)
}

/// A transfer that fails makes the run invalid; all else ends the experiment.
fn report(
    seed: u64,
    measured: Result<Measured>,
    against: Option<&BTreeMap<String, f64>>,
) -> Result<RunReport> {
    let nothing = Measured { transfers: Vec::new(), cpu: None, strangers: 0.0 };
    let (measured, reasons) = match measured {
        Ok(measured) => (measured, Vec::new()),
        Err(Error::Traffic { problem, .. }) => (nothing, vec![problem]),
        Err(error) => return Err(error),
    };
    let Measured { transfers, cpu, strangers } = measured;
    let mut warnings = Vec::new();
    if strangers > MOST_STRANGERS {
        let percent = strangers * 100.0;
        warnings.push(format!("other processes took {percent:.0} % of the machine's CPU"));
    }
    let metrics = match cpu {
        Some(cpu) => metrics::of_verdicts(&transfers, &cpu),
        None => metrics::of(&transfers, against),
    };
    Ok(RunReport::without_network(seed, Validity { reasons, warnings }, metrics))
}
