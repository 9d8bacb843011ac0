use std::process::ExitCode;

use vcc_command::output;
use vcc_command::table::{Align, Table};
use vcc_port::{AttachOptions, Datapath};

/// Instructions that the kernel's verifier processes for each program
///
/// It refuses a program at a million. A program is loaded once for all ports, but for the two that
/// each port has of its own.
#[derive(clap::Args)]
pub struct Arguments {}

pub fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    let mut table = Table::new([("PROGRAM", Align::Left), ("INSTRUCTIONS", Align::Right)]);
    for (program, instructions) in Datapath::load(&AttachOptions::default())?.verified()? {
        table.row([program, instructions.to_string()]);
    }
    output::say(&table.render());
    Ok(ExitCode::SUCCESS)
}
