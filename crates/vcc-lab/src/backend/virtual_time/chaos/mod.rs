//! Chaos: a path that loses, repeats, reorders, changes and holds up segments, and ports at both ends
//! that are treated otherwise, or replaced by ones that know nothing, while guests of every congestion
//! control transfer files. All of it follows from a seed. No file lacks a byte or has another one, and
//! none is lost that arrives without vcc.

use super::*;
use crate::scenario::{Change, Chaos, Flow, made};
use vcc_domain::BufferSpec;
use vcc_engine::{Act, Mode, Params, Underlay};
use vcc_fabric::{AnyQueue, Impairments};
use vcc_testing::can_attach;
use vcc_traffic::random::SplitMix64;
use vcc_traffic::{Pattern, Transfers, Until};

/// How many seeds are tried, from the first on. `make verify` sets many.
const SEEDS: &str = "VCC_CHAOS_SEEDS";
const FEW_SEEDS: u64 = 3;
/// Tries only this seed.
const SEED: &str = "VCC_CHAOS_SEED";

/// What the guests' kernel has.
const GUESTS: [&str; 8] =
    ["reno", "cubic", "dctcp", "bbr", "vegas", "illinois", "highspeed", "flood"];
const UNDERLAYS: [&str; 4] = ["reno-ecn", "dctcp", "cubic", "reno"];
const TRANSFERS: u32 = 12;
const TRANSFER_BYTES: u64 = 150_000;
const MS: u64 = 1_000_000;
/// A file may take several timeouts.
const MEASURED_NS: u64 = 20_000 * MS;
/// Things happen at ports from then on, until so long later.
const CHANGES_FROM_NS: u64 = 350 * MS;
const CHANGES_FOR_NS: u64 = 5_000 * MS;

/// Numbers by a seed.
struct Dice(SplitMix64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

fn impairments(dice: &mut Dice) -> Impairments {
    Impairments {
        loss_permille: dice.below(30) as u32,
        duplicate_permille: dice.below(20) as u32,
        reorder_permille: dice.below(60) as u32,
        late_max_ns: dice.below(5 * MS),
        corrupt_permille: dice.below(10) as u32,
        spike_every_ns: (300 + dice.below(2_000)) * MS,
        spike_ns: dice.below(400 * MS),
    }
}

fn params(dice: &mut Dice) -> Params {
    let underlay: Underlay = dice.one_of(&UNDERLAYS).parse().expect("an underlay");
    Params::with(|p| {
        p.underlay = underlay.number();
        p.act = dice.one_of(&[Act::Window, Act::Hold]).number();
        p.retransmit = (p.act == Act::Hold.number() && dice.one_in(2)).into();
        p.feedback = (!dice.one_in(4)).into();
        p.mode = dice.one_of(&[Mode::Enforce, Mode::Enforce, Mode::Enforce, Mode::Shadow]).number();
        p.emit = dice.one_in(3).into();
        p.window_cap_bytes = if dice.one_in(4) { 20_000 } else { 0 };
    })
}

fn changes(dice: &mut Dice, hosts: usize) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut at_ns = CHANGES_FROM_NS;
    while at_ns < CHANGES_FROM_NS + CHANGES_FOR_NS {
        let what = if dice.one_in(4) { What::Renew } else { What::Treat(params(dice)) };
        changes.push(Change { at_ns, host: dice.below(hosts as u64) as usize, what });
        at_ns += dice.below(300 * MS);
    }
    changes
}

/// A guest of each congestion control sends files to one receiver, 100 Mbit/s.
fn scenario(seed: u64, with_vcc: bool) -> Scenario {
    let dice = &mut Dice(SplitMix64::new(seed));
    let mut scenario = made::scenario();
    let receiver = GUESTS.len();
    scenario.network.guests = GUESTS.len();
    scenario.network.rate_bps = 100_000_000;
    scenario.network.edge_rate_bps = 1_000_000_000;
    scenario.network.delay_ns = (20 + dice.below(2_000)) * 1_000;
    scenario.network.queue = AnyQueue::edge();
    scenario.sack = dice.one_in(2);
    scenario.measured_ns = MEASURED_NS;
    let transfers = Transfers {
        bytes: TRANSFER_BYTES.try_into().expect("some"),
        count: TRANSFERS.try_into().expect("some"),
        every_ms: None,
        until: Until::Received,
    };
    scenario.guests = GUESTS
        .map(|congestion_control| {
            let mut guest = made::guest();
            guest.congestion_control = congestion_control.into();
            guest.ecn = dice.one_in(3);
            guest.tso = dice.one_in(2);
            guest
        })
        .into();
    scenario.flows = (0..GUESTS.len())
        .map(|sender| Flow {
            sender,
            receiver,
            pattern: Pattern::Transfers(transfers),
            ..made::flow()
        })
        .collect();
    scenario.chaos =
        Chaos { impairments: Some(impairments(dice)), changes: changes(dice, GUESTS.len() + 1) };
    let mut treated = || {
        let mut params = params(dice);
        // The lab compares guests that begin in shadow mode, and samples them every 100 us for that.
        params.0.mode = Mode::Enforce.number();
        with_vcc.then(|| Translation { params, share: None, buffer: BufferSpec::default() })
    };
    scenario.guests.iter_mut().for_each(|guest| guest.translation = treated());
    scenario.receivers.translation = treated();
    scenario
}

/// What went wrong, if anything did.
fn run(kernel: &Kernel, seed: u64, with_vcc: bool) -> std::result::Result<(), String> {
    let data = run_once(kernel, &scenario(seed, with_vcc), seed, &mut |_| {})
        .map_err(|error| error.to_string())?;
    let again: u64 = data.tcp.values().map(|counters| counters.get("RetransSegs")).sum();
    assert!(again > 0, "{SEED}={seed}: the path lost nothing");
    let wrong = data.flows.iter().zip(GUESTS).filter_map(|(flow, guest)| {
        let done = flow.transfers.len();
        let is_whole = flow.payload_ok && done == TRANSFERS as usize;
        (!is_whole).then(|| format!("{guest}: {done} files, payload ok: {}", flow.payload_ok))
    });
    let wrong: Vec<_> = wrong.collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|it| it.parse().expect("a number"));
    match number(SEED) {
        Some(seed) => vec![seed],
        None => (1..=number(SEEDS).unwrap_or(FEW_SEEDS)).collect(),
    }
}

#[test]
fn chaos_takes_no_byte_and_no_connection() {
    if !can_attach() {
        return;
    }
    let kernel = prepare().unwrap_or_else(|error| panic!("{error}"));
    let seeds = seeds();
    let mut broken = Vec::new();
    let mut hopeless = 0;
    for &seed in &seeds {
        let Err(problem) = run(&kernel, seed, true) else { continue };
        match run(&kernel, seed, false) {
            Ok(()) => {
                println!("{SEED}={seed}: {problem}");
                broken.push(format!("{SEED}={seed}: {problem}"));
            }
            // What the path does alone is no fault of the ports.
            Err(_) => hopeless += 1,
        }
    }
    assert!(broken.is_empty(), "lost, and not without vcc:\n{}", broken.join("\n"));
    assert!(hopeless * 4 <= seeds.len(), "{hopeless} of {} seeds show nothing", seeds.len());
    println!(
        "{} seeds, {} files each over {} congestion controls: none lost; {hopeless} also fail without vcc",
        seeds.len(),
        TRANSFERS as usize * GUESTS.len(),
        GUESTS.len(),
    );
}
