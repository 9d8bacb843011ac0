//! Tests that cannot run on this machine. To cargo they pass, so they are counted apart.

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::sync::OnceLock;
use std::{env, io};

use vcc_port::doctor;

/// The file to which each skipped test adds a line.
const SKIPPED_TESTS: &str = "VCC_SKIPPED_TESTS";

/// Whether vcc can attach on this machine. If not, the calling test is counted as skipped, with the
/// reason. A datapath that the verifier refuses is a bug, and no reason to skip.
#[track_caller]
#[must_use]
pub fn can_attach() -> bool {
    static ANSWER: OnceLock<Result<(), String>> = OnceLock::new();
    match ANSWER.get_or_init(doctor::require_attach) {
        Ok(()) => true,
        Err(reason) => {
            skip(reason);
            false
        }
    }
}

/// Counts the calling test as skipped.
#[track_caller]
pub fn skip(reason: &str) {
    let place = Location::caller();
    let line = format!("SKIPPED {}:{}: {reason}\n", place.file(), place.line());
    // Cargo captures what the print macros write, and shows it only if the test fails.
    let _ = io::stderr().write_all(line.as_bytes());
    let Some(path) = env::var_os(SKIPPED_TESTS) else { return };
    let file = OpenOptions::new().append(true).create(true).open(path);
    if let Err(e) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        panic!("${SKIPPED_TESTS}: {e}");
    }
}
