//! A virtual machine that migrates between two hosts, with its connections.

mod domain;
mod hosts;
mod kernel;
mod transfers;

use std::env;
use std::time::Duration;

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
fn tell(what: &str, mut silences: Vec<Duration>) {
    silences.sort();
    println!(
        "figure: {} migrations {what}; the transfer goes on after {:.1?} at the median, {:.1?} at \
         most",
        silences.len(),
        silences[silences.len() / 2],
        silences[silences.len() - 1],
    );
}
