//! Inputs of the fuzzer, which it has kept because they reach something new in the driver domain:
//! the kernel does the same.

use std::path::PathBuf;
use std::{env, fs};

use vcc_engine::{Params, sys};
use vcc_fuzz::frames::{Script, Step};

use crate::direction::Direction::{FromGuest, ToGuest};
use crate::setup::usually;
use crate::shells::Shells;

/// A folder with other inputs than those of the repository.
const INPUTS_VARIABLE: &str = "VCC_FUZZ_INPUTS";

/// What the kernel cannot do is left out: holding, snooping, and time that is not the machine's.
fn treatments() -> impl Iterator<Item = Params> {
    let treatment = |police, guest_ecn| {
        Params::with(|p| {
            p.police = police;
            p.guest_ecn = guest_ecn;
        })
    };
    [treatment(0, sys::GUEST_ECN_LEAVE as u8), treatment(1, sys::GUEST_ECN_OVERRIDE as u8)]
        .into_iter()
}

pub fn inputs() -> Vec<PathBuf> {
    let kept = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/frames");
    let folder = env::var_os(INPUTS_VARIABLE).map_or_else(kept, PathBuf::from);
    let mut inputs: Vec<_> =
        fs::read_dir(folder).expect("inputs").map(|input| input.expect("one").path()).collect();
    inputs.sort();
    inputs
}

#[test]
fn what_the_fuzzer_found_is_the_same_in_both() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut compared = [0, 0];
    for params in treatments() {
        let mut shells = Shells::new(&usually(params));
        for path in inputs() {
            let bytes = fs::read(&path).expect("readable");
            for (number, step) in Script::new(&bytes).enumerate() {
                let Step::Frame(sent) = step else { continue };
                if !shells.is_in_step {
                    shells = Shells::new(&usually(params));
                }
                let from = if sent.from_guest { FromGuest } else { ToGuest };
                let place = format!("{}, step {number}", path.display());
                let output = shells.send(&place, from, &sent.bytes, sent.gso_size.into());
                compared[usize::from(output.is_some_and(|it| it.frame != sent.bytes))] += 1;
            }
        }
        shells.assert_counted();
    }
    let [untouched, changed] = compared;
    assert!(untouched > 500 && changed > 500, "{compared:?}");
}
