//! Peers that are not honest, generated from a seed, before a real stack behind a port. After each
//! step, what the stack believes of the connection is what the port believes.
//!
//! `VCC_DISHONEST=N` plays N seeds, `VCC_SEED=N` plays one. A seed that finds something becomes a test
//! of the engine or a script.

mod generate;
mod talk;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::{env, thread};

use vcc_testing::on_a_host;

use crate::bed::{Lane, Mode};
use crate::new_peer;

const LANES_OF_EACH_MODE: usize = 3;
const SEEDS_UNLESS_SAID: u64 = 300;
const MODES: [Mode; 3] = [Mode::Transparent, Mode::RenoEcn, Mode::Dctcp];

fn number(name: &str) -> Option<u64> {
    let value = env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|e| panic!("{name}: {value}: {e}")))
}

/// Plays the seeds in lanes of all modes; each seed has its mode. Returns what failed, and the number
/// of steps.
fn play_all(seeds: &[u64]) -> (Vec<String>, u64) {
    let mode_of = |seed: u64| MODES[(seed % MODES.len() as u64) as usize];
    let lanes = Lane::create(&MODES.map(|mode| (mode, LANES_OF_EACH_MODE)));
    let waiting = MODES.map(|mode| {
        let seeds = seeds.iter().rev().copied().filter(|seed| mode_of(*seed) == mode);
        (mode, Mutex::new(seeds.collect::<Vec<u64>>()))
    });
    let (failed, steps) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    thread::scope(|scope| {
        for mut lane in lanes {
            let waiting =
                waiting.iter().find(|(mode, _)| *mode == lane.mode).map(|(_, seeds)| seeds);
            let (failed, steps) = (&failed, &steps);
            let guest = Arc::clone(&lane.guest);
            scope.spawn(move || {
                let played = guest.inside(|| {
                    loop {
                        let seed =
                            waiting.and_then(|seeds| seeds.lock().expect("not panicked").pop());
                        let Some(seed) = seed else { return };
                        match talk::play(seed, &mut lane, new_peer()) {
                            Ok(played) => drop(steps.fetch_add(played, Ordering::Relaxed)),
                            Err(why) => failed.lock().expect("not panicked").push(why),
                        }
                    }
                });
                played.expect("inside");
            });
        }
    });
    (failed.into_inner().expect("not panicked"), steps.into_inner())
}

#[test]
fn a_port_believes_what_the_stack_behind_it_believes() {
    on_a_host(|| {
        let count = number("VCC_DISHONEST").unwrap_or(SEEDS_UNLESS_SAID);
        let seeds = match number("VCC_SEED") {
            Some(seed) => vec![seed],
            None => (0..count).collect(),
        };
        let (failed, steps) = play_all(&seeds);
        assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
        eprintln!(
            "figure: {} connections with dishonest peers, {steps} steps: all as believed",
            seeds.len()
        );
    });
}
