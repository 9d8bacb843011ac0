//! Limits of this process and of the host that ports may reach.

use std::fs;
use std::io;

use crate::{Host, PORTS_MAX, pins};

/// Maps, programs, sockets and a port or two.
const FILES: u64 = 64;
/// Of a host without flows, with its programs while they are verified.
const HOST_BYTES: u64 = 100 << 20;

/// What to do about an error of the kernel, if it shows that a limit is reached. libbpf-rs keeps
/// error numbers to itself, apart from the text.
pub(crate) fn advice(words: &str) -> Option<String> {
    let is = |number: i32| words.contains(&format!("(os error {number})"));
    if is(libc::EMFILE) {
        return Some(format!(
            "this process may have {} open: raise LimitNOFILE= of its unit, or `ulimit -n`",
            open_files()
        ));
    }
    if is(libc::ENFILE) {
        return Some("the host's limit: raise it with `sysctl fs.file-max`".into());
    }
    if is(libc::ENOMEM) {
        return Some(
            "a limit of this process (MemoryMax= of its unit), or the host has too little free"
                .into(),
        );
    }
    None
}

/// The room for ports, for people; an error if there is no room for one more.
pub(crate) fn room_for_ports() -> std::result::Result<String, String> {
    let (files, available) = (open_files(), available_bytes());
    if files < FILES {
        return Err(format!("this process may have only {files} files open"));
    }
    let is_loaded = Host::is_there();
    if !is_loaded && available < HOST_BYTES {
        let [available_mb, needed_mb] = [available, HOST_BYTES].map(|bytes| bytes >> 20);
        return Err(format!("{available_mb} MB of memory are available, {needed_mb} are needed"));
    }
    let there = pins::indices().map_err(|e| e.to_string())?.len();
    if there >= PORTS_MAX as usize {
        return Err(format!("there are {there} ports, the most that a host can have"));
    }
    Ok(format!(
        "{there} ports of {PORTS_MAX}; this process may have {files} files open, and {} MB of memory",
        available >> 20
    ))
}

/// The most that this process may have: it raises its soft limit to the hard one.
fn open_files() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes, and the call cannot fail then.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    limit.rlim_max
}

/// The least of what the host has and what the control groups of this process let it have.
fn available_bytes() -> u64 {
    let of_host = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kb| kb << 10)
    });
    of_host.unwrap_or(u64::MAX).min(of_groups().unwrap_or(u64::MAX))
}

/// By the control groups (version 2) of this process; an error where there are none.
fn of_groups() -> io::Result<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let mut least = u64::MAX;
    let mut group = std::path::Path::new("/sys/fs/cgroup").join(own);
    while group.starts_with("/sys/fs/cgroup") {
        let number = |name| -> Option<u64> {
            fs::read_to_string(group.join(name)).ok()?.trim_end().parse().ok()
        };
        // Without a limit, it reads `max`.
        if let (Some(max), Some(current)) = (number("memory.max"), number("memory.current")) {
            least = least.min(max.saturating_sub(current));
        }
        if !group.pop() {
            break;
        }
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_limits_say_what_to_raise() {
        let of = |number| advice(&io::Error::from_raw_os_error(number).to_string());
        assert!(of(libc::EMFILE).expect("advice").contains("LimitNOFILE="));
        assert!(of(libc::ENFILE).expect("advice").contains("fs.file-max"));
        assert!(of(libc::ENOMEM).expect("advice").contains("MemoryMax="));
        assert_eq!(of(libc::EINVAL), None);
    }
}
