mod datapath;
mod throughput;
mod virtual_time;
mod wire;

use std::process::ExitCode;

/// Measure what vcc costs
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Datapath(datapath::Arguments),
    Throughput(throughput::Arguments),
    Virtual(virtual_time::Arguments),
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        What::Datapath(arguments) => datapath::run(arguments),
        What::Throughput(arguments) => throughput::run(arguments),
        What::Virtual(arguments) => virtual_time::run(arguments),
    }
}
