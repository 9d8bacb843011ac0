//! Runs a case with virtual machines: boots its guest, and makes its transfers.

use super::Case;
use super::card::{self, COMPUTE, Card};
use super::crowd::Crowd;
use super::file::{Machines, Parameters};
use super::metrics::{self, Transfers};
use super::network::Network;
use super::transfer::{self, Direction, Terms};
use super::turns::{self, Part, Slices};
use super::verdicts::Judge;
use crate::base::error::{Doing, Error, Result};
use crate::base::interrupt::or_interrupted;
use crate::base::meter::Reading;
use crate::experiment::{Testbed, Tick};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::thread;
use std::time::{Duration, Instant};
use vcc_net::random::SplitMix64;
use vcc_qemu::{Image, Kernel, Vm};
use vcc_results::measure::Validity;
use vcc_results::report::{Conditions, RunReport};
use vcc_traffic::TcpCounters;
use vcc_vcpu::Shares;

/// Boot of a guest and making its network.
const OVERHEAD_S: f64 = 6.0;
/// The pause before a transfer is half to one and a half of this: any time of a round of turns.
const PAUSE_US: u64 = 100_000;
/// Transfers of a size and direction, even if they take longer than their time.
const LEAST_TRANSFERS: usize = 3;
/// Beyond this share, other processes may have taken a guest's turn.
const MOST_STRANGERS: f64 = 0.1;

/// Its parts are dropped in this order.
pub struct MachinesTestbed<'a> {
    machines: &'a Machines,
    measured_s: f64,
    seed: u64,
    images: HashMap<Kernel, Image>,
    /// They are stopped, but for their turns.
    neighbours: Vec<Vm>,
    _network: Network,
    _slices: Slices,
    /// The metrics of each case's last run, for those that are compared with it.
    metrics: BTreeMap<String, BTreeMap<String, f64>>,
}

impl<'a> MachinesTestbed<'a> {
    pub fn prepare(
        machines: &'a Machines,
        cases: &[&Case],
        conditions: &Conditions,
    ) -> Result<Self> {
        card::check_programs(cases)?;
        let slices = Slices::set(machines.slice_ms.get())?;
        let mut images = HashMap::new();
        for kernel in
            [Kernel::Debian].into_iter().chain(cases.iter().map(|it| it.parameters.kernel.into()))
        {
            if let Entry::Vacant(entry) = images.entry(kernel) {
                let image = Image::find_or_build(kernel);
                entry.insert(image.doing(|| "make the virtual machines' guest".into())?);
            }
        }
        let network = Network::create(machines)?;
        let mut neighbours = Vec::new();
        for _ in 0..machines.neighbours {
            let neighbour =
                or_interrupted(card::boot(&network.host, &images[&Kernel::Debian], &[]))?;
            neighbours.push(busy(neighbour).doing(|| "keep a virtual machine busy".into())?);
        }
        Ok(Self {
            machines,
            measured_s: conditions.schedule.measured_s,
            seed: conditions.seed,
            images,
            neighbours,
            _network: network,
            _slices: slices,
            metrics: BTreeMap::new(),
        })
    }

    /// One run of a case.
    fn measure(&mut self, case: &Parameters, seed: u64, tick: Tick) -> Result<Measured> {
        let machines = self.machines;
        let sizes = case.sizes.as_ref().unwrap_or(&machines.sizes);
        // A network of its own: nothing of another case is left in it.
        let mut network = Network::create(machines)?;
        let card = Card::connect(&network, case)?;
        let mut vm = card.boot(&network, &self.images[&case.kernel.into()], case, sizes)?;
        let kinds = metrics::kinds(machines, case);
        let verdicts = machines.verdicts.as_ref();
        let terms = Terms {
            guest: card.guest_address(),
            asks: verdicts.map_or(0, |verdicts| verdicts.asks),
            peer_window_bytes: verdicts.map(|verdicts| verdicts.peer_window_bytes),
        };
        let mut judge = verdicts.map(|_| Judge::attach_to(&network, &card)).transpose()?;
        let mut crowd = match case.queue_ms {
            0 => None,
            queue_ms => Some(Crowd::start(&network, machines.rate_mbps, queue_ms)?),
        };
        let each = Duration::from_secs_f64(self.measured_s / kinds.len() as f64);
        if !case.alone {
            each_of(&self.neighbours, Vm::go_on)?;
        }
        let cpu = judge.as_ref().map(Judge::watch_cpu).transpose()?;
        let before = Reading::take()?;
        let mut random = SplitMix64::new(seed);
        let mut series = |(number, &(direction, bytes)): (usize, &(Direction, u32))| {
            tick((kinds.len() - number) as f64 * each.as_secs_f64(), None);
            let mut times_s = Vec::new();
            let counters = machines.tcp_counters.then(|| counters(&mut vm)).transpose()?;
            let end = Instant::now() + each;
            while times_s.len() < LEAST_TRANSFERS || Instant::now() < end {
                let transfer = || one(direction, bytes, &mut vm, &terms, &mut random);
                times_s.push(network.peer.inside(transfer)?);
                judge.as_mut().map_or(Ok(()), Judge::judge_flows)?;
            }
            network.link.check()?;
            crowd.as_mut().map_or(Ok(()), Crowd::check)?;
            let verdicts = judge.as_mut().map(Judge::take).unwrap_or_default();
            let counters = match counters {
                Some(before) => Some(self::counters(&mut vm)?.since(&before)),
                None => None,
            };
            Ok(Transfers { direction, bytes, times_s, counters, verdicts })
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

impl Testbed<Parameters> for MachinesTestbed<'_> {
    fn run_s(&self, _: &Case) -> f64 {
        self.measured_s + OVERHEAD_S
    }

    fn run(&mut self, case: &Case, attempt: u32, tick: Tick) -> Result<RunReport> {
        let seed = self.seed.wrapping_add(u64::from(attempt) + 1);
        let measured = or_interrupted(self.measure(&case.parameters, seed, tick));
        let against = case.parameters.against.as_ref().and_then(|name| self.metrics.get(name));
        let report = report(self.seed, measured, against)?;
        self.metrics.insert(case.name.clone(), report.metrics.clone());
        Ok(report)
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

/// Those of the guest's TCP.
fn counters(vm: &mut Vm) -> Result<TcpCounters> {
    // A prompt may stand before the first line, which is not TCP's.
    let text = vm.run("cat /proc/net/snmp /proc/net/netstat");
    let text = text.doing(|| "read the counters of the guest's TCP".into())?;
    Ok(TcpCounters::from_text(&text))
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
        None => metrics::from_transfers(&transfers, against),
    };
    Ok(RunReport::without_network(seed, Validity { reasons, warnings }, metrics))
}
