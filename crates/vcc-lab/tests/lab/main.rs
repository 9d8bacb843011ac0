//! The command as a user meets it: what it prints, where, and with which exit code.

mod bench;
#[path = "../../../vcc-web/tests/page/browser.rs"]
mod browser;
#[path = "../../../vcc/tests/command/command_output.rs"]
mod command_output;
mod machines;
mod page;
mod renew;
mod runs;
mod usage;
mod virtual_time;

use std::process::Command;

use command_output::CommandOutput;

const NAME: &str = "vcc-lab";

fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_vcc-lab"))
}

fn lab(arguments: &str) -> CommandOutput {
    command().args(arguments.split_whitespace()).output().expect("the command").into()
}
