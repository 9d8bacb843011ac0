//! A real stack behind a port, and a peer that is a script. Each script is played without a port,
//! with a port that changes nothing, and with ports that translate: what the guest does has to be
//! the same, and of each segment a port may change only what docs/translation.md names.
//!
//! `VCC_SCRIPT=NAME` plays the scripts whose names begin so.

mod across;
mod application;
mod bed;
mod cards;
mod dishonest;
mod faulty;
mod option;
mod peer;
mod play;
mod script;
mod segment;
mod wire;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::{env, fs, thread};

use bed::{Lane, Mode};
use play::{Trace, play};
use script::Script;
use vcc_testing::on_a_host;

const LANES_OF_EACH_MODE: usize = 3;

/// An address that no run has had: a host remembers what it learned of a peer.
fn new_peer() -> Ipv4Addr {
    static PEERS: AtomicU32 = AtomicU32::new(1);
    let first = u32::from(Ipv4Addr::new(172, 16, 0, 0));
    Ipv4Addr::from(first + PEERS.fetch_add(1, Ordering::Relaxed))
}

fn scripts() -> Vec<Script> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/scripts");
    let wanted = env::var("VCC_SCRIPT").unwrap_or_default();
    let mut scripts = Vec::new();
    for entry in fs::read_dir(&directory).expect("the scripts") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a script");
        scripts.extend(Script::read_all(&name, &text).unwrap_or_else(|e| panic!("{e}")));
    }
    scripts.retain(|script| script.name.starts_with(&wanted));
    assert!(!scripts.is_empty(), "no script's name begins with {wanted}");
    scripts
}

/// What the guest sent, by script and mode.
type Traces = BTreeMap<(usize, Mode), Trace>;

/// Plays all scripts in all modes for which they are written. Returns what failed, too.
fn play_all(scripts: &[Script]) -> (Traces, Vec<String>) {
    let lanes = Lane::create(&Mode::ALL.map(|mode| (mode, LANES_OF_EACH_MODE)));
    let waiting = Mode::ALL.map(|mode| {
        let of_mode: Vec<usize> =
            (0..scripts.len()).rev().filter(|at| scripts[*at].is_for(mode)).collect();
        (mode, Mutex::new(of_mode))
    });
    let waiting = BTreeMap::from(waiting);
    let outcomes = Mutex::new((Traces::new(), Vec::new()));
    thread::scope(|scope| {
        for mut lane in lanes {
            let (waiting, outcomes) = (&waiting[&lane.mode], &outcomes);
            let guest = Arc::clone(&lane.guest);
            scope.spawn(move || {
                let played = guest.inside(|| {
                    loop {
                        let next = waiting.lock().expect("not panicked").pop();
                        let Some(at) = next else { return };
                        let outcome = play(&scripts[at], &mut lane, new_peer());
                        let mut outcomes = outcomes.lock().expect("not panicked");
                        match outcome {
                            Ok(trace) => drop(outcomes.0.insert((at, lane.mode), trace)),
                            Err(report) => outcomes.1.push(report),
                        }
                    }
                });
                played.expect("inside");
            });
        }
    });
    outcomes.into_inner().expect("not panicked")
}

/// What a guest sends behind a port is what it sends without one.
fn compare(scripts: &[Script], traces: &Traces) -> Vec<String> {
    let mut different = Vec::new();
    for ((at, mode), trace) in traces {
        let script = &scripts[*at];
        let Some(plain) = traces.get(&(*at, Mode::Plain)) else { continue };
        if script.is_alike(Mode::Plain, *mode) && trace != plain {
            let (name, mode) = (&script.name, mode.name());
            different.push(format!("{name}: {mode}: {trace:#?}\nwithout a port: {plain:#?}"));
        }
    }
    different
}

#[test]
fn every_script_holds_with_and_without_a_port() {
    on_a_host(|| {
        let scripts = scripts();
        let (traces, mut failed) = play_all(&scripts);
        failed.extend(compare(&scripts, &traces));
        assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
        eprintln!("{} runs of {} scripts", traces.len(), scripts.len());
    });
}
