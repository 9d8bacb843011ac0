//! Requirements of attaching.

use std::fs;
use std::path::Path;

use super::{AS_ROOT, Check, Missing, Need, missing, probe};
use crate::{AttachOptions, Datapath, Expedited, bpffs, capabilities, kernel, limits, timers};

type Found = Result<String, Missing>;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = of_the_kernel();
    if checks.iter().all(|check| check.ok) {
        checks.push(check("grace-periods", Ok(grace_periods())));
        checks.push(check("room", room()));
        checks.push(check("timers", timers()));
        checks.push(check("datapath", datapath()));
    }
    checks
}

/// Requirements of loading the datapath.
pub(super) fn of_the_kernel() -> Vec<Check> {
    vec![
        check("kernel", kernel()),
        check("capabilities", held_capabilities()),
        check("tcx", tcx()),
        check("btf", btf()),
        check("jit", jit()),
        check("bpf-filesystem", bpf_filesystem()),
    ]
}

fn check(name: &'static str, found: Found) -> Check {
    Check::new(Need::Attach, name, found)
}

fn kernel() -> Found {
    let release = kernel::release();
    if kernel::is_tried(&release) {
        return Ok(format!("vcc is known to work on Linux {release}"));
    }
    if kernel::version(&release) >= Some(kernel::OLDEST) {
        let tried = kernel::tried().replace(" or ", " and ");
        return Ok(format!(
            "each change of vcc is tried on {tried}, not on Linux {release}: docs/kernels.md has the last \
             results on other kernels"
        ));
    }
    let found = format!("Linux {release} has no TCX, to which vcc attaches");
    Err(Missing::new(found, format!("boot {}", kernel::tried())))
}

fn held_capabilities() -> Found {
    let lacking: Vec<String> = capabilities::ATTACH
        .into_iter()
        .filter(|capability| !capability.held())
        .map(|capability| format!("{} (to {})", capability.name, capability.needed_to))
        .collect();
    if lacking.is_empty() {
        return Ok(capabilities::ATTACH.map(|capability| capability.name).join(", "));
    }
    Err(Missing::new(format!("not held: {}", lacking.join(", ")), AS_ROOT))
}

fn tcx() -> Found {
    let remedy = format!("boot {}, built with CONFIG_NET_XGRESS", kernel::tried());
    probe::tcx().map_err(|e| missing("trying to attach a program", &e, remedy))
}

fn btf() -> Found {
    let path = "/sys/kernel/btf/vmlinux";
    if Path::new(path).exists() {
        return Ok("the kernel has type information".into());
    }
    Err(Missing::new(format!("no {path}"), "boot a kernel built with CONFIG_DEBUG_INFO_BTF"))
}

fn jit() -> Found {
    let path = "/proc/sys/net/core/bpf_jit_enable";
    match fs::read_to_string(path).map(|value| value.trim() == "0") {
        // bpf_loop() takes callbacks.
        Ok(true) => Err(Missing::new(
            "BPF's JIT is off, and without it the kernel refuses programs with callbacks",
            "sysctl net.core.bpf_jit_enable=1",
        )),
        Ok(false) => Ok("programs are compiled".into()),
        // Only the initial network namespace has this file.
        Err(_) => Ok("not visible from this network namespace".into()),
    }
}

fn bpf_filesystem() -> Found {
    if bpffs::is_mounted() {
        Ok("mounted".into())
    } else if let Err(error) = bpffs::require_lasting() {
        Err(Missing::new(error.to_string(), "nsenter --net=/run/netns/NAME vcc doctor"))
    } else if capabilities::SYS_ADMIN.held() {
        Ok("not mounted; `vcc attach` will mount it".into())
    } else {
        let found = "not mounted, and mounting it needs CAP_SYS_ADMIN";
        Err(Missing::new(found, "mount -t bpf bpf /sys/fs/bpf, as root"))
    }
}

fn room() -> Found {
    let remedy =
        "detach ports, or raise the limit (`ulimit -n`, the unit's LimitNOFILE=, MemoryMax=)";
    limits::room_for_ports().map_err(|found| Missing::new(found, remedy))
}

/// Slow ones hinder nothing.
fn grace_periods() -> String {
    match Expedited::obstacle() {
        Some(why) => format!("not expedited, so attaching takes some 40 ms a port: {why}"),
        None => "expedited while ports are attached".into(),
    }
}

/// Who turns the ports' wheels, and whether somebody does.
fn timers() -> Found {
    if timers::are_there() {
        return Ok("the kernel's".into());
    }
    let lack = kernel::lack_of_timers();
    match timers::are_wheels_still() {
        Ok(false) => Ok(format!("the daemon does the timers' work every 1 to 16 ms: {lack}")),
        Ok(true) => Err(Missing::new(
            format!("{lack}, and no daemon is up: connections of ports are not forgotten"),
            "start `vcc run`",
        )),
        Err(error) => Err(Missing::new(error.to_string(), AS_ROOT)),
    }
}

fn datapath() -> Found {
    match Datapath::load(&AttachOptions::default()) {
        Ok(_) => Ok("loads".into()),
        Err(error) => {
            Err(Missing::new(error.to_string(), "follow this line, or report it with `vcc bundle`"))
        }
    }
}
