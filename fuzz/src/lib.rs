//! What is fuzzed. A target is a function of arbitrary bytes that panics if a law is broken.
//!
//! `fuzz/run.sh` runs the targets under libFuzzer, which keeps the inputs that reach new code. Those
//! worth keeping are in `fuzz/corpus`, and every test run replays them.

pub mod capture;
pub mod channel;
pub mod control;
pub mod engine;
pub mod frames;
pub mod http;
mod input;
mod params;
pub mod policy;
mod steps;
pub mod vhost;

pub use steps::steps;

/// A target, and how long its inputs get.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    pub most_bytes: usize,
}

pub const TARGETS: &[Target] = &[
    Target { name: "capture", run: capture::run, most_bytes: 4096 },
    Target { name: "channel", run: channel::run, most_bytes: 512 },
    Target { name: "control", run: control::run, most_bytes: 512 },
    Target { name: "engine", run: engine::run, most_bytes: 2048 },
    Target { name: "frames", run: frames::run, most_bytes: 2048 },
    Target { name: "http", run: http::run, most_bytes: 512 },
    Target { name: "policy", run: policy::run, most_bytes: 512 },
    Target { name: "vhost", run: vhost::run, most_bytes: 1024 },
];
