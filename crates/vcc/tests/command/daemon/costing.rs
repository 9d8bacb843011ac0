//! What ports cost, as the daemon sees it without CAP_SYS_ADMIN.

use std::fs;
use std::process::Command;

use serde_json::Value;
use vcc_testing::{can_attach, guest, ip, isolated, skip};

use super::restarting::bounded;
use super::watching::{address, eventually};
use super::{POLICY, Place};
use crate::wire::{connect, exchange};

const SYSCTL: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// While this exists, the kernel counts; then the sysctl is what it was.
struct Counting(String);

impl Counting {
    fn begin() -> std::io::Result<Self> {
        let before = fs::read_to_string(SYSCTL)?;
        fs::write(SYSCTL, "1")?;
        Ok(Self(before))
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        fs::write(SYSCTL, &self.0).expect("the sysctl as it was");
    }
}

/// The value of each direction; None if it is not given.
fn counted(text: &str, what: &str) -> Option<[f64; 2]> {
    let of = |direction: &str| {
        let sample = format!(
            "vcc_port_cost_{what}_total{{device=\"port\",tenant=\"acme\",direction=\"{direction}\"}} "
        );
        text.lines().find_map(|line| line.strip_prefix(&sample)?.parse().ok())
    };
    Some([of("from_guest")?, of("to_guest")?])
}

#[test]
fn the_cost_of_ports_is_read_while_the_kernel_counts_it() {
    if !can_attach() {
        return;
    }
    isolated(|| {
        let counting = match Counting::begin() {
            Ok(counting) => counting,
            Err(error) => return skip(&format!("{SYSCTL} cannot be written: {error}")),
        };
        ip("link set lo up");
        let guest = guest();
        let mounted = Command::new("mount").args(["-t", "bpf", "bpf", "/sys/fs/bpf"]).status();
        assert!(mounted.expect("mount").success());
        let place = Place::new("costing", POLICY);
        let run = || place.run_with(bounded(&place.command()), "127.0.0.1:0");
        let daemon = run();
        daemon.wait_for_log("port: attached");
        let served = address(&daemon);
        let (mut one, mut other) = connect(&guest);
        exchange(&mut one, &mut other);

        let is_counted = |(_, text): &(String, String)| {
            counted(text, "frames").is_some_and(|it| it[0] > 9.0 && it[1] > 9.0)
        };
        let (_, text) = eventually(&served, "/metrics", is_counted);
        let before = counted(&text, "seconds").expect("seconds");
        assert!(before.iter().all(|seconds| (1e-9..10.0).contains(seconds)), "{before:?}");
        assert!(text.contains("\nvcc_tables_bytes "), "{text}");
        let has_cost = |(_, text): &(String, String)| {
            let snapshot: Value = serde_json::from_str(text).expect("JSON");
            let port = &snapshot["ports"][0];
            port["cost_cpu"].is_number()
                && port["frames_from_guest_per_s"].is_number()
                && snapshot["tables_bytes"].is_number()
        };
        eventually(&served, "/api/snapshot.json", has_cost);

        // The next daemon has no program of the port open.
        drop(daemon);
        let daemon = run();
        daemon.wait_for_log("port: adopted");
        let served = address(&daemon);
        // Its first reading may come later.
        let is_known = |(_, text): &(String, String)| counted(text, "seconds").is_some();
        let (_, text) = eventually(&served, "/metrics", is_known);
        let after = counted(&text, "seconds").expect("seconds");
        assert!(after[0] >= before[0] && after[1] >= before[1], "{before:?}, {after:?}");
        drop((one, other, counting));
    });
}
