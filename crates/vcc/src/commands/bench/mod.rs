mod connections;
mod datapath;
mod devices;
mod domain;
mod figures;
mod flood;
mod host;
mod ports;
mod throughput;
mod verifier;
mod virtual_time;
mod wire;

use std::path::Path;
use std::process::ExitCode;

use vcc_port::bench::Spread;
use vcc_results::report::BenchReport;
use vcc_results::report::bench::{self, Measurements};

use vcc_command::output;
use vcc_command::version;

/// Measure the cost of vcc
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Connections(connections::Arguments),
    Datapath(datapath::Arguments),
    Domain(domain::Arguments),
    Flood(flood::Arguments),
    Host(host::Arguments),
    Ports(ports::Arguments),
    Throughput(throughput::Arguments),
    Verifier(verifier::Arguments),
    Virtual(virtual_time::Arguments),
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        What::Connections(arguments) => connections::run(arguments),
        What::Datapath(arguments) => datapath::run(arguments),
        What::Domain(arguments) => domain::run(arguments),
        What::Flood(arguments) => flood::run(arguments),
        What::Host(arguments) => host::run(arguments),
        What::Ports(arguments) => ports::run(arguments),
        What::Throughput(arguments) => throughput::run(arguments),
        What::Verifier(arguments) => verifier::run(arguments),
        What::Virtual(arguments) => virtual_time::run(arguments),
    }
}

fn spread(spread: &Spread) -> bench::Spread {
    let Spread { median, p10, p90, samples } = *spread;
    bench::Spread { median, p10, p90, samples }
}

fn write(path: &Path, measurements: Measurements) -> anyhow::Result<()> {
    output::write_json(path, &BenchReport::new(measurements, &version()))
}
