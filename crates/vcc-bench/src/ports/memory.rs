//! Memory in kilobytes.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::Context;

/// What the kernel has allocated for itself: with it, maps and programs. Waits until memory has been
/// freed that waits for grace periods of RCU.
pub fn kernel_kb() -> anyhow::Result<f64> {
    const GRACE: Duration = Duration::from_secs(1);
    thread::sleep(GRACE);
    Ok(["SUnreclaim:", "VmallocUsed:", "Percpu:"]
        .into_iter()
        .map(|name| field("/proc/meminfo", name))
        .sum::<anyhow::Result<u64>>()? as f64)
}

pub fn resident_kb(pid: u32) -> anyhow::Result<f64> {
    Ok(field(&format!("/proc/{pid}/status"), "VmRSS:")? as f64)
}

fn field(path: &str, name: &str) -> anyhow::Result<u64> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    value.with_context(|| format!("{path} has no {name}"))
}
