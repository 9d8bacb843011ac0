//! The benchmarks of `vcc-lab bench`: what they measure, and what they print.

mod connections;
mod datapath;
mod detour;
mod devices;
mod domain;
mod figures;
mod flood;
mod host;
mod measure;
mod ports;
mod process;
mod throughput;
mod verifier;
mod wire;

use std::path::Path;
use std::process::ExitCode;

use vcc_command::{output, version};
use vcc_results::report::BenchReport;
use vcc_results::report::bench::Measurements;

/// Each benchmark but that of virtual time, which is the lab's.
#[derive(clap::Subcommand)]
pub enum Benchmark {
    Connections(connections::Arguments),
    Datapath(datapath::Arguments),
    Domain(domain::Arguments),
    Flood(flood::Arguments),
    Host(host::Arguments),
    Ports(ports::Arguments),
    Throughput(throughput::Arguments),
    Verifier(verifier::Arguments),
}

pub fn run(benchmark: &Benchmark) -> anyhow::Result<ExitCode> {
    match benchmark {
        Benchmark::Connections(arguments) => connections::run(arguments),
        Benchmark::Datapath(arguments) => datapath::run(arguments),
        Benchmark::Domain(arguments) => domain::run(arguments),
        Benchmark::Flood(arguments) => flood::run(arguments),
        Benchmark::Host(arguments) => host::run(arguments),
        Benchmark::Ports(arguments) => ports::run(arguments),
        Benchmark::Throughput(arguments) => throughput::run(arguments),
        Benchmark::Verifier(arguments) => verifier::run(arguments),
    }
}

/// Writes figures to a file, as JSON.
pub fn write(path: &Path, measurements: Measurements) -> anyhow::Result<()> {
    output::write_json(path, &BenchReport::new(measurements, &version()))
}
