//! The targets without the fuzzer: the inputs that are kept, each of which reached something new or
//! broke a law once, and random ones.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use vcc_fuzz::{TARGETS, Target, steps};

const RANDOM_INPUTS: u64 = 300;
/// Of a target's kept inputs together.
const MOST_CORPUS_BYTES: usize = 100_000;

/// Runs a target, and says which input it was if a law breaks.
fn run(target: &Target, what: &str, input: &[u8]) {
    if let Err(broken) = catch_unwind(AssertUnwindSafe(|| (target.run)(input))) {
        eprintln!("target {}, {what}", target.name);
        resume_unwind(broken);
    }
}

fn corpus(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let kept =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut kept: Vec<_> = kept.map(|entry| entry.expect("an entry").path()).collect();
    kept.sort();
    kept.iter()
        .map(|path| (path.display().to_string(), fs::read(path).expect("readable")))
        .collect()
}

#[test]
fn what_was_found_once_is_no_find_any_more() {
    for target in TARGETS {
        let kept = corpus(target);
        assert!(kept.len() > 10, "{}: {} inputs are kept", target.name, kept.len());
        let bytes: usize = kept.iter().map(|(_, input)| input.len()).sum();
        assert!(bytes <= MOST_CORPUS_BYTES, "{}: {bytes} bytes are kept", target.name);
        for (path, input) in &kept {
            run(target, path, input);
        }
    }
}

/// `VCC_FUZZ_INPUT` names the file of an input, below a folder named after its target.
#[test]
fn one_input() {
    let Some(path) = std::env::var_os("VCC_FUZZ_INPUT").map(PathBuf::from) else { return };
    let is_its =
        |target: &&Target| path.parent().is_some_and(|folder| folder.ends_with(target.name));
    let target = TARGETS.iter().find(is_its).expect("a folder named after a target");
    run(target, "VCC_FUZZ_INPUT", &fs::read(&path).expect("readable"));
}

#[test]
fn random_bytes() {
    for target in TARGETS {
        for seed in 0..RANDOM_INPUTS {
            run(target, &format!("seed {seed}"), &random_bytes_of(seed, target.most_bytes));
        }
    }
    assert!(steps() > 100_000, "{} calls of the engine", steps());
}

/// By splitmix64. Few values are large, so that what is chosen first is chosen often.
fn random_bytes_of(seed: u64, most_bytes: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    let bytes = next() as usize % most_bytes;
    (0..bytes).map(|_| next()).map(|n| (n as u8) >> (n >> 8 & 3)).collect()
}
