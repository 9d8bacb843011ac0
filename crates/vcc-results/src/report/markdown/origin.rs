//! Where figures come from: build and machine.

use super::text::line;

/// `vcc 0.1.0 (2b0d7f4)`; files of older builds do not say.
pub fn build(version: Option<&str>) -> String {
    version.map_or_else(|| "an unrecorded build of vcc".into(), |it| line(&format!("vcc {it}")))
}

/// `Linux 6.18.5, 2 CPUs`
pub fn machine(kernel: &str, cpus: usize) -> String {
    let unit = if cpus == 1 { "CPU" } else { "CPUs" };
    format!("{}, {cpus} {unit}", line(&format!("Linux {kernel}")))
}
