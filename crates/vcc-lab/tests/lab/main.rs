//! The command as a user meets it: what it prints, where, and with which exit code.

mod bench;
#[path = "../../../vcc-web/tests/page/browser.rs"]
mod browser;
mod machines;
mod page;
mod runs;
#[path = "../../../vcc/tests/command/said.rs"]
mod said;
mod usage;
mod virtual_time;

use std::process::Command;

use said::Said;

const NAME: &str = "vcc-lab";

fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_vcc-lab"))
}

fn lab(arguments: &str) -> Said {
    command().args(arguments.split_whitespace()).output().expect("the command").into()
}
