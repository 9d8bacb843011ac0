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
mod origin;
mod ports;
mod process;
mod throughput;
mod verifier;
mod wire;

use std::process::ExitCode;

pub use origin::Origin;

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

impl Benchmark {
    /// `vcc-lab bench NAME`
    pub fn name(&self) -> &'static str {
        match self {
            Benchmark::Connections(_) => "connections",
            Benchmark::Datapath(_) => "datapath",
            Benchmark::Domain(_) => "domain",
            Benchmark::Flood(_) => "flood",
            Benchmark::Host(_) => "host",
            Benchmark::Ports(_) => "ports",
            Benchmark::Throughput(_) => "throughput",
            Benchmark::Verifier(_) => "verifier",
        }
    }
}

pub fn run(benchmark: &Benchmark, origin: &Origin) -> anyhow::Result<ExitCode> {
    match benchmark {
        Benchmark::Connections(arguments) => connections::run(arguments, origin),
        Benchmark::Datapath(arguments) => datapath::run(arguments, origin),
        Benchmark::Domain(arguments) => domain::run(arguments, origin),
        Benchmark::Flood(arguments) => flood::run(arguments, origin),
        Benchmark::Host(arguments) => host::run(arguments, origin),
        Benchmark::Ports(arguments) => ports::run(arguments, origin),
        Benchmark::Throughput(arguments) => throughput::run(arguments, origin),
        Benchmark::Verifier(arguments) => verifier::run(arguments),
    }
}
