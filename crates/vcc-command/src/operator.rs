//! The operator's command, which benchmarks and experiments run.

use std::env;
use std::path::PathBuf;
use std::process::Command;

const NAME: &str = "vcc";

/// The context of an error of running it.
pub const CANNOT_RUN_OPERATOR: &str = "cannot run vcc (looked for beside vcc-lab, then in $PATH)";

/// `vcc`: the one next to this program, otherwise the one in $PATH.
pub fn operator() -> Command {
    Command::new(beside_this_program().unwrap_or_else(|| NAME.into()))
}

fn beside_this_program() -> Option<PathBuf> {
    let path = env::current_exe().ok()?.with_file_name(NAME);
    path.is_file().then_some(path)
}
