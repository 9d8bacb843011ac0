//! Chaos: a path that loses, repeats, reorders, changes and holds up segments and whose MTU shrinks, and
//! ports at both ends that are treated otherwise, or end and are replaced by ones that know nothing,
//! while guests of every congestion control transfer files. All of it follows from a seed. No file
//! has a missing or a changed byte, and each file that arrives without vcc arrives with it, except for
//! what an ended port had promised: both ends see that the connection has ended.

mod dice;
mod oracle;
mod path;
mod ports;
mod scenario;

use super::*;
use scenario::scenario;
use vcc_testing::can_attach;

/// How many seeds are tried, from the first on. `make verify` sets many.
const SEEDS: &str = "VCC_CHAOS_SEEDS";
const FEW_SEEDS: u64 = 3;
/// Tries only this seed.
const SEED: &str = "VCC_CHAOS_SEED";

/// What the guests' kernel has.
const GUESTS: [&str; 8] =
    ["reno", "cubic", "dctcp", "bbr", "vegas", "illinois", "highspeed", "flood"];
/// Files of each guest.
const TRANSFERS: u32 = 12;
const MS: u64 = 1_000_000;
/// Things happen at ports and to the path from then on, until so long later.
const CHANGES_FROM_NS: u64 = 350 * MS;
const CHANGES_FOR_NS: u64 = 5_000 * MS;

/// How many connections were ended because of a promise.
///
/// # Errors
/// What went wrong.
fn run(kernel: &Kernel, seed: u64, with_vcc: bool) -> std::result::Result<usize, String> {
    let (scenario, memories) = scenario(seed, with_vcc);
    let data = run_once(kernel, &scenario, seed, &mut |_| {}).map_err(|error| error.to_string())?;
    let again: u64 = data.tcp.values().map(|counters| counters.get("RetransSegs")).sum();
    assert!(again > 0, "{SEED}={seed}: the path lost nothing");
    let problems = oracle::problems(&data, &memories);
    if problems.is_empty() {
        Ok(memories.iter().map(|memory| memory.ended()).sum())
    } else {
        Err(problems.join("; "))
    }
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
    let (mut hopeless, mut ended) = (0, 0);
    for &seed in &seeds {
        let problem = match run(&kernel, seed, true) {
            Ok(with_promises) => {
                ended += with_promises;
                continue;
            }
            Err(problem) => problem,
        };
        match run(&kernel, seed, false) {
            Ok(_) => {
                println!("{SEED}={seed}: {problem}");
                broken.push(format!("{SEED}={seed}: {problem}"));
            }
            // What the path does alone is no fault of the ports.
            Err(without) => {
                println!("{SEED}={seed} also fails without vcc: {problem}\nwithout: {without}");
                hopeless += 1;
            }
        }
    }
    assert!(broken.is_empty(), "lost, and not without vcc:\n{}", broken.join("\n"));
    assert!(hopeless * 4 <= seeds.len(), "{hopeless} of {} seeds show nothing", seeds.len());
    println!(
        "figure: {} seeds, {} files each over {} congestion controls: none lost, {ended} ended with their \
         port's promises; {hopeless} also fail without vcc",
        seeds.len(),
        TRANSFERS as usize * GUESTS.len(),
        GUESTS.len(),
    );
}
