//! The capabilities that attaching requires, and those that this process has.

use std::fs;

#[derive(Clone, Copy)]
pub(crate) struct Capability {
    pub name: &'static str,
    pub needed_to: &'static str,
    bit: u32,
}

pub(crate) const BPF: Capability =
    Capability { name: "CAP_BPF", needed_to: "load BPF programs and read their maps", bit: 39 };
pub(crate) const NET_ADMIN: Capability =
    Capability { name: "CAP_NET_ADMIN", needed_to: "attach programs to a device", bit: 12 };
pub(crate) const PERFMON: Capability = Capability {
    name: "CAP_PERFMON",
    needed_to: "let BPF programs do pointer arithmetic",
    bit: 38,
};
pub(crate) const SYS_ADMIN: Capability =
    Capability { name: "CAP_SYS_ADMIN", needed_to: "mount the BPF file system", bit: 21 };

pub(crate) const ATTACH: [Capability; 3] = [BPF, NET_ADMIN, PERFMON];

impl Capability {
    /// CAP_SYS_ADMIN implies CAP_BPF and CAP_PERFMON, which were split off from it.
    pub(crate) fn held(self) -> bool {
        let effective = effective();
        let has = |capability: Self| effective >> capability.bit & 1 == 1;
        has(self) || (self.bit != NET_ADMIN.bit && has(SYS_ADMIN))
    }
}

/// The names of the capabilities that attaching requires and this thread lacks.
pub(crate) fn missing() -> Vec<&'static str> {
    ATTACH.into_iter().filter(|capability| !capability.held()).map(|c| c.name).collect()
}

/// A reason for EPERM.
pub(crate) fn why_refused() -> String {
    let missing = missing();
    if missing.is_empty() {
        // BPF does not accept capabilities of a user namespace.
        "the kernel refuses it although this process has the capabilities: it may be in a container"
            .into()
    } else {
        format!("it needs {}", missing.join(" and "))
    }
}

fn effective() -> u64 {
    fs::read_to_string("/proc/thread-self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
            u64::from_str_radix(line.trim(), 16).ok()
        })
        .unwrap_or(0)
}
