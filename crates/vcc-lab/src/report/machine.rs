//! Where an experiment ran.

use serde::Serialize;
use std::fs;
use std::thread::available_parallelism;

#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    pub kernel: String,
    pub cpu: String,
    pub cpus: usize,
}

impl Machine {
    pub(crate) fn this() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let info = read("/proc/cpuinfo");
        let model = info.lines().find(|line| line.starts_with("model name"));
        Self {
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
            cpu: model.and_then(|line| line.split_once(": ")).map_or("", |(_, name)| name).into(),
            cpus: available_parallelism().map_or(1, |count| count.get()),
        }
    }
}
