//! Arbitrary segments of guests and peers, valid and not, with the laws checked at the port.

mod run;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use vcc_domain::PoolUse;
use vcc_engine::{Mode, Params, Underlay, sys};

use crate::common::rng::Rng;
use crate::common::rules::by_guest_port;
use crate::ends::holding;
use run::Run;

/// Repeats a run in which a law broke, by its seed.
const SEED_VARIABLE: &str = "VCC_SEED";
const STEPS: u32 = 400;

fn params(rng: &mut Rng) -> Params {
    let underlay: Underlay =
        rng.pick(&["reno", "reno-ecn", "dctcp", "cubic"]).parse().expect("an underlay");
    Params(sys::vcc_params {
        underlay: underlay.number(),
        prr: rng.range(0, 2) as u8,
        pace_push: rng.range(0, 2) as u8,
        emit: rng.range(0, 2) as u8,
        undo: rng.range(0, 2) as u8,
        police: rng.range(0, 2) as u8,
        window_cap_bytes: rng.pick(&[0, 0, 5_000, 40_000]),
        guest_rate_cap_bytes_per_ms: rng.pick(&[0, 0, 100, 5_000]),
        window_max_bytes: rng.pick(&[65_000, 500_000, 2 << 20]),
        rto_min_us: rng.pick(&[5_000, 200_000]),
        act: rng.pick(&[sys::ACT_HOLD, sys::ACT_HOLD, sys::ACT_SPLIT]) as u8,
        retransmit: rng.range(0, 2) as u8,
        ..holding().0
    })
}

fn seeds(count: u64) -> Box<dyn Iterator<Item = u64>> {
    match std::env::var(SEED_VARIABLE) {
        Ok(seed) => Box::new(std::iter::once(seed.parse().expect("a number"))),
        Err(_) => Box::new(0..count),
    }
}

fn run(seed: u64, drive: fn(&mut Run)) -> Run {
    run_under(seed, |_, _| Vec::new(), drive)
}

fn run_under(seed: u64, rules: fn(&mut Rng, Params) -> Vec<Params>, drive: fn(&mut Run)) -> Run {
    let mut run = Run::new(seed, params, rules);
    if let Err(broken) = catch_unwind(AssertUnwindSafe(|| drive(&mut run))) {
        eprintln!("repeat with {SEED_VARIABLE}={seed}");
        resume_unwind(broken);
    }
    run
}

#[test]
fn every_law_holds_and_every_byte_arrives() {
    let (mut left_bytes, mut checked_acks, mut resets) = (0, 0, 0);
    for seed in seeds(300) {
        let run = run(seed, |run| {
            (0..STEPS).for_each(|_| run.step());
            run.finish();
        });
        left_bytes += run.guest.watch.left_bytes;
        checked_acks += run.guest.watch.checked_acks;
        resets += run.connections.iter().filter(|connection| connection.reset).count();
    }
    if std::env::var(SEED_VARIABLE).is_err() {
        assert!(left_bytes > 20_000_000 && checked_acks > 20_000 && resets > 20);
    }
}

/// The port asserts after each segment that the account is what its members were charged.
#[test]
fn every_law_holds_in_a_pool() {
    let (mut held_bytes, mut overdrawn) = (0, 0);
    for seed in seeds(200) {
        let rules = |rng: &mut Rng, params| {
            let pool_bytes = rng.pick(&[3_000, 20_000, 100_000]);
            let weights = [1, 2, 5].into_iter();
            weights.map(|weight| pooled(params, 0, weight, pool_bytes)).collect()
        };
        let run = run_under(seed, rules, |run| {
            (0..STEPS).for_each(|_| run.step());
            run.finish();
            let [PoolUse { window_bytes, totals: pool, .. }] = &run.guest.port.pools()[..] else {
                panic!("one pool");
            };
            let is_within = Some(pool.most_held_bytes) <= *window_bytes;
            assert!(is_within || pool.overdrawn > 0, "{pool:?}");
            run.guest.port.has_gone();
            let pool = run.guest.port.pools()[0].totals;
            assert_eq!((pool.held_bytes, pool.idle_bytes, pool.weight), (0, 0, 0));
        });
        let pool = run.guest.port.pools()[0].totals;
        held_bytes += u64::from(pool.most_held_bytes);
        overdrawn += u64::from(pool.overdrawn);
    }
    if std::env::var(SEED_VARIABLE).is_err() {
        assert!(held_bytes > 2_000_000 && overdrawn > 100, "{held_bytes}, {overdrawn}");
    }
}

/// Windows are another treatment's then, but every byte arrives.
#[test]
fn every_byte_arrives_whatever_the_policy_becomes() {
    for seed in seeds(120) {
        run(seed, |run| {
            run.guest.watch.windows = false;
            run.guest.watch.splits = true;
            run.any_sizes = true;
            for _ in 0..STEPS {
                if run.rng.chance(10) {
                    let modes =
                        [Mode::Enforce, Mode::Enforce, Mode::Shadow, Mode::Drain, Mode::Ignore];
                    let changed = changed(&mut run.rng, &modes);
                    run.guest.port.set_params(changed);
                }
                run.step();
            }
            run.finish();
        });
    }
}

/// Each connection has a rule of its own then, which changes as well.
#[test]
fn every_byte_arrives_whatever_the_rules_become() {
    for seed in seeds(120) {
        run(seed, |run| {
            run.guest.watch.windows = false;
            run.guest.watch.splits = true;
            run.any_sizes = true;
            for _ in 0..STEPS {
                if run.rng.chance(10) {
                    let modes = [Mode::Enforce, Mode::Enforce, Mode::Shadow, Mode::Ignore];
                    let params = [(); 3].map(|()| changed_in_pool(&mut run.rng, &modes));
                    run.guest.port.set_rules(by_guest_port(&params));
                }
                run.step();
            }
            run.finish();
        });
    }
}

fn pooled(params: Params, pool: u16, weight: u16, pool_bytes: u32) -> Params {
    Params(sys::vcc_params { pool, pool_weight: weight, pool_bytes, ..params.0 })
}

fn changed_in_pool(rng: &mut Rng, modes: &[Mode]) -> Params {
    let changed = changed(rng, modes);
    let (pool, weight) = (rng.range(0, 2) as u16, rng.range(0, 4) as u16);
    if weight == 0 { changed } else { pooled(changed, pool, weight, rng.pick(&[3_000, 100_000])) }
}

fn changed(rng: &mut Rng, modes: &[Mode]) -> Params {
    let mut changed = params(rng);
    let acts = [sys::ACT_HOLD, sys::ACT_SPLIT, sys::ACT_WINDOW];
    changed.0.act = rng.pick(&acts) as u8;
    changed.0.mode = rng.pick(modes).number();
    changed.0.police = 0;
    changed
}
