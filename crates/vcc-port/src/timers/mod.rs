//! What turns the wheels of ports: the kernel's timers, or a thread where it gives BPF programs none.
//! Kernels with PREEMPT_RT do not: their verifier reports `bpf_timer cannot be used for PREEMPT_RT`.

mod turning;

use std::sync::OnceLock;

use crate::{Governor, Result, bpffs, kernel, libbpf, object, pins};
pub(crate) use turning::Timers;
pub use turning::Turning;

static PROBE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/timers.bpf.o"));

/// Whether the kernel gives BPF programs timers. It is asked once.
pub(crate) fn are_there() -> bool {
    static ARE_THERE: OnceLock<bool> = OnceLock::new();
    *ARE_THERE.get_or_init(|| !kernel::is_taken_for_real_time() && !is_refused())
}

/// A failure for another reason, such as permission, is for the datapath to report.
fn is_refused() -> bool {
    let Ok(open) = object::open(PROBE, "the probe of timers") else { return false };
    let (result, output) = libbpf::listen(|| open.load());
    result.is_err() && libbpf::refusal(&output).is_some()
}

/// Whether this host has ports whose wheels nobody turns: the kernel has no timers, and no daemon is up.
pub fn are_wheels_still() -> Result<bool> {
    Ok(!are_there() && bpffs::has_home()? && !pins::is_empty()? && !Governor::is_there()?)
}

#[cfg(test)]
mod tests {
    use vcc_testing::can_attach;

    use super::*;

    /// The probe is no more than what the datapath asks of the kernel.
    #[test]
    fn the_probe_loads_where_the_kernel_has_timers() {
        if can_attach() {
            assert_eq!(is_refused(), kernel::is_real_time() && !kernel::is_taken_for_real_time());
        }
    }
}

/// Of this process, whose tests asked already. The tests that wait for a wheel run once more.
#[cfg(test)]
mod without {
    use std::env;
    use std::process::Command;

    use vcc_testing::can_attach;

    use super::*;

    const TESTS: [&str; 8] = [
        "port::tests::expiry::the_kernel_forgets",
        "port::tests::expiry::a_connection_that_was_idle",
        "port::tests::emitting::duplicate_acks",
        "port::tests::still",
        "host::tests::a_near_deadline",
        "host::lanes",
        "datapath::tests::a_connection_that_begins",
        "port::tests::attached",
    ];

    #[test]
    fn a_thread_turns_the_wheels() {
        // In the process that this one starts, it would start another one.
        if !can_attach() || kernel::is_taken_for_real_time() {
            return;
        }
        let program = env::current_exe().expect("a program");
        let output = Command::new(program)
            .args(TESTS)
            .env(kernel::AS_REAL_TIME, "1")
            .output()
            .expect("it runs");
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{stdout}");
    }
}
