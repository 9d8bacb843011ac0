//! A virtual machine that migrates between two hosts, with its connections.

mod cases;
mod domain;
mod floods;
mod ground;
mod hosts;
mod kernel;
mod transfers;

use std::env;
use std::time::Duration;

use vcc_testing::skip;

use super::{Image, on_a_host_with_a_tap};

/// Migrations of the test, unless [`MOVES_VARIABLE`] says how many.
const MOVES: usize = 2;
const MOVES_VARIABLE: &str = "VCC_MOVES";

fn moves() -> usize {
    match env::var(MOVES_VARIABLE) {
        Ok(text) => text.parse().unwrap_or_else(|e| panic!("{MOVES_VARIABLE}={text}: {e}")),
        Err(_) => MOVES,
    }
}

/// Prints what was measured.
fn report(what: &str, mut silences: Vec<Duration>) {
    silences.sort();
    println!(
        "figure: {} migrations {what}; the transfer continues after {:.1?} at the median, {:.1?} at \
         most",
        silences.len(),
        silences[silences.len() / 2],
        silences[silences.len() - 1],
    );
}

/// On hosts whose QEMU moves the state of a card; otherwise skipped.
#[track_caller]
fn with_a_newer_qemu(work: impl FnOnce(&Image) + Send) {
    on_a_host_with_a_tap(|image| match vcc_qemu::with_device_state().expect("the script") {
        Some(qemu) => work(&image.clone().under(qemu)),
        None => skip("QEMU 10 is not installed, and scripts/fetch-qemu.sh has not been run"),
    });
}
