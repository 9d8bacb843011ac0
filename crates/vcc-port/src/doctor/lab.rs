//! Requirements of the lab beyond attaching.

use std::fs::{self, OpenOptions};
use std::{env, io};

use super::{Check, Missing, Need, missing};
use crate::{Netns, namespace};

type Found = Result<String, Missing>;

pub(super) fn checks() -> Vec<Check> {
    let check = |name, found| Check::new(Need::Lab, name, found);
    vec![
        check("namespaces", namespaces()),
        check("tun", tun()),
        check("real-time", real_time()),
        check("ip", binary("ip", "apt-get install iproute2")),
        check("ethtool", binary("ethtool", "apt-get install ethtool")),
        check("reno", reno()),
    ]
}

fn namespaces() -> Found {
    let remedy = "boot a kernel built with CONFIG_NET_NS";
    Netns::create().map_err(|e| missing("creating a network namespace", &e, remedy))?;
    Ok("network namespaces can be created".into())
}

fn tun() -> Found {
    let path = "/dev/net/tun";
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.map_err(|e| missing(path, &e, "modprobe tun"))?;
    Ok(format!("{path} opens"))
}

/// Tries on a thread of its own, so that the priority ends with it.
fn real_time() -> Found {
    let attempt = || {
        let priority = libc::sched_param { sched_priority: 1 };
        // SAFETY: the parameters outlive the call; 0 stands for the calling thread.
        match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    let remedy = "boot a kernel without CONFIG_RT_GROUP_SCHED";
    namespace::on_own_thread(attempt).map_err(|e| missing("requesting SCHED_FIFO", &e, remedy))?;
    Ok("SCHED_FIFO is permitted".into())
}

fn binary(name: &str, remedy: &'static str) -> Found {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
        .map(|found| found.display().to_string())
        .ok_or_else(|| Missing::new(format!("no `{name}` in $PATH"), remedy))
}

fn reno() -> Found {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let remedy = "boot a kernel with TCP";
    let available = fs::read_to_string(path).map_err(|e| missing(path, &e, remedy))?;
    if available.split_whitespace().any(|one| one == "reno") {
        return Ok("the guests' congestion control is available".into());
    }
    Err(Missing::new(format!("the kernel offers {} only", available.trim()), remedy))
}
