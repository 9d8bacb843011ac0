use std::process::ExitCode;

use vcc_bench::{Benchmark, Origin};
use vcc_command::allow_most_open_files;
use vcc_lab::sources;

use crate::virtual_time;

/// Measure the cost of vcc
#[derive(clap::Subcommand)]
pub enum Command {
    #[command(flatten)]
    OfVcc(Benchmark),
    Virtual(virtual_time::Arguments),
}

pub fn run(command: &Command) -> anyhow::Result<ExitCode> {
    // Not for experiments: programs that these start size their tables by the limit that they inherit.
    // If raising the limit is not permitted, as in a sandbox, the default suffices for a few ports.
    let _ = allow_most_open_files();
    let origin = |name| Origin::begin(sources::of_bench(name));
    match command {
        Command::OfVcc(benchmark) => vcc_bench::run(benchmark, &origin(benchmark.name())),
        Command::Virtual(arguments) => virtual_time::run(arguments, &origin("virtual")),
    }
}
