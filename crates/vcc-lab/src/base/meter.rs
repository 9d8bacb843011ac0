//! CPU use of the machine, and the share of other processes in it.

use crate::base::error::{Doing, Error, Result};
use crate::base::system::{check, now_ns};
use std::fs;

/// The unit of /proc (USER_HZ), the same on every architecture that has TCX.
const TICK_NS: u64 = 10_000_000;
/// The kernel's own threads are children of this one.
const KTHREADD: u32 = 2;

/// Counters that only grow.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    at_ns: u64,
    cpus: u64,
    idle_ns: u64,
    steal_ns: u64,
    own_ns: u64,
    strangers_ns: u64,
}

/// Between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// CPU time available on all CPUs together.
    pub capacity_s: f64,
    /// Not idle: processes, kernel threads, interrupts. Without what the machine below us took.
    pub busy_s: f64,
    /// Of it: this process's own threads, with the softirqs that ran in them, and the kernel's
    /// softirq threads.
    pub own_s: f64,
    /// The part of it used by processes other than this run: at most what is not `own_s`.
    pub strangers_s: f64,
}

impl Usage {
    /// What the run took of the machine, 0 to 1: all that is not idle and not a stranger's.
    pub fn share(&self) -> f64 {
        self.seconds() / self.capacity_s
    }

    pub fn seconds(&self) -> f64 {
        self.busy_s - self.strangers_s
    }

    pub fn own_share(&self) -> f64 {
        self.own_s / self.capacity_s
    }

    pub fn strangers_share(&self) -> f64 {
        self.strangers_s / self.capacity_s
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.capacity_s += other.capacity_s;
        self.busy_s += other.busy_s;
        self.own_s += other.own_s;
        self.strangers_s += other.strangers_s;
    }
}

impl Reading {
    pub fn take() -> Result<Self> {
        let stat = read("/proc/stat")?;
        let machine = parse_machine(&stat).ok_or(Error::CpuTimes)?;
        let processes = processes()?;
        let own_id = std::process::id();
        Ok(Self {
            at_ns: now_ns(),
            cpus: machine.cpus,
            idle_ns: machine.idle_ticks * TICK_NS,
            steal_ns: machine.steal_ticks * TICK_NS,
            own_ns: own_cpu_ns()? + softirq_threads_ns(&processes),
            strangers_ns: strangers_ticks(&processes, own_id) * TICK_NS,
        })
    }

    /// From this reading to a later one.
    pub fn until(&self, later: &Self) -> Usage {
        let seconds = |from_ns: u64, to_ns: u64| to_ns.saturating_sub(from_ns) as f64 / 1e9;
        let capacity_s = seconds(self.at_ns, later.at_ns) * later.cpus as f64;
        // Idle time is exact where busy time is sampled a few hundred times a second, by a tick
        // that may well beat with the traffic: so what is not idle is busy.
        let unused_s =
            seconds(self.idle_ns, later.idle_ns) + seconds(self.steal_ns, later.steal_ns);
        let busy_s = (capacity_s - unused_s).max(0.0);
        let own_s = seconds(self.own_ns, later.own_ns);
        // Strangers are read one by one, after the machine: they may have ticks that it had not yet.
        let others_s = (busy_s - own_s).max(0.0);
        let strangers_s = seconds(self.strangers_ns, later.strangers_ns).min(others_s);
        Usage { capacity_s, busy_s, own_s, strangers_s }
    }
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).doing(|| format!("read {path}"))
}

#[derive(Debug, PartialEq)]
struct MachineTicks {
    cpus: u64,
    idle_ticks: u64,
    steal_ticks: u64,
}

/// Waiting for a disk is idling.
fn parse_machine(stat: &str) -> Option<MachineTicks> {
    let is_one_cpu = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = all.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let [_user, _nice, _system, idle, iowait, _irq, _softirq, steal, ..] = ticks[..] else {
        return None;
    };
    let cpus = stat.lines().filter(is_one_cpu).count() as u64;
    Some(MachineTicks { cpus, idle_ticks: idle + iowait, steal_ticks: steal })
}

#[derive(Debug, PartialEq)]
struct Process {
    id: u32,
    parent: u32,
    name: String,
    /// Its own, and of those children that it has outlived: so nothing is lost when one ends.
    ticks: u64,
}

/// Processes that end in the meantime are left out.
fn processes() -> Result<Vec<Process>> {
    let entries = fs::read_dir("/proc").doing(|| "list /proc".into())?;
    let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let stats = names
        .filter(|name| is_process(name))
        .filter_map(|id| fs::read_to_string(format!("/proc/{id}/stat")).ok());
    Ok(stats.filter_map(|stat| parse_process(&stat)).collect())
}

/// See proc_pid_stat(5). The name may itself contain spaces and brackets.
fn parse_process(stat: &str) -> Option<Process> {
    let (id, rest) = stat.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().unwrap_or(0)).sum();
    Some(Process { id: id.parse().ok()?, parent, name: name.into(), ticks })
}

/// Ticks of all processes but this one, its children and the kernel's threads.
fn strangers_ticks(processes: &[Process], own_id: u32) -> u64 {
    let is_stranger = |process: &&Process| {
        let (id, parent) = (process.id, process.parent);
        ![id, parent].contains(&own_id) && ![id, parent].contains(&KTHREADD)
    };
    processes.iter().filter(is_stranger).map(|process| process.ticks).sum()
}

/// CPU time of all threads of this process, ended ones included; exact.
fn own_cpu_ns() -> Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes.
    check(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) })
        .doing(|| "read this process's CPU time".into())?;
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The ksoftirqd threads, which run softirqs under load.
fn softirq_threads_ns(processes: &[Process]) -> u64 {
    let threads = processes
        .iter()
        .filter(|process| process.parent == KTHREADD && process.name.starts_with("ksoftirqd/"));
    let run_ns = |id: u32| {
        let text = fs::read_to_string(format!("/proc/{id}/schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    threads.filter_map(|thread| run_ns(thread.id)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn idle_and_steal_of_the_machine_and_its_cpus() {
        let stat = "cpu  10 20 30 400 50 6 7 80 9 9\ncpu0 1 1 1 1 1 1 1 1 0 0\n\
                    cpu1 1 1 1 1 1 1 1 1 0 0\nintr 5\ncpufreq 3\n";
        let expected = MachineTicks { cpus: 2, idle_ticks: 450, steal_ticks: 80 };
        assert_eq!(parse_machine(stat), Some(expected));
        assert_eq!(parse_machine("cpu  1 2 3\n"), None);
        assert_eq!(parse_machine("intr 5\n"), None);
    }

    #[test]
    fn a_process_may_have_any_name() {
        let stat = "42 (a) b (c) S 7 1 1 0 -1 4 1 2 3 4 100 20 3 4 20 0 1 0 5 6 7";
        let expected = Process { id: 42, parent: 7, name: "a) b (c".into(), ticks: 127 };
        assert_eq!(parse_process(stat), Some(expected));
        assert_eq!(parse_process("42 (cut short) S 7"), None);
    }

    #[test]
    fn strangers_are_neither_ours_nor_the_kernels() {
        let process = |id, parent, ticks| Process { id, parent, name: String::new(), ticks };
        let all = [
            process(1, 0, 1),
            process(2, 0, 10),
            process(15, 2, 100),
            process(50, 1, 1000),
            process(51, 50, 10_000),
            process(60, 1, 100_000),
        ];
        assert_eq!(strangers_ticks(&all, 50), 100_001);
    }

    #[test]
    fn usage_is_what_is_neither_idle_nor_stolen() {
        let start =
            Reading { at_ns: 0, cpus: 2, idle_ns: 7, steal_ns: 9, own_ns: 5, strangers_ns: 3 };
        let end = Reading {
            at_ns: 10_000_000_000,
            idle_ns: 12_000_000_007,
            steal_ns: 1_000_000_009,
            own_ns: 2_000_000_005,
            strangers_ns: 4_000_000_003,
            ..start
        };
        let usage = start.until(&end);
        let expected = Usage { capacity_s: 20.0, busy_s: 7.0, own_s: 2.0, strangers_s: 4.0 };
        assert_eq!(usage, expected);
        assert_eq!((usage.seconds(), usage.share()), (3.0, 0.15));
    }

    /// The processes are read later than the machine.
    #[test]
    fn strangers_take_no_more_than_the_machine_and_this_process_leave() {
        let start =
            Reading { at_ns: 0, cpus: 2, idle_ns: 0, steal_ns: 0, own_ns: 0, strangers_ns: 0 };
        let busy = Reading {
            at_ns: 1_000_000_000,
            own_ns: 500_000_000,
            strangers_ns: 1_700_000_000,
            ..start
        };
        assert_eq!(start.until(&busy).strangers_s, 1.5);
        let alone = Reading { idle_ns: 1_600_000_000, ..busy };
        assert_eq!(start.until(&alone).strangers_s, 0.0);
    }

    /// CPU time that the test itself uses is attributed to it.
    #[test]
    fn work_of_this_process_is_found() {
        const WORK_NS: u64 = 200_000_000;
        let start = Reading::take().unwrap();
        let own_ns = own_cpu_ns().unwrap();
        let mut sum = 0_u64;
        while own_cpu_ns().unwrap() - own_ns < WORK_NS {
            sum = black_box(sum.wrapping_add(1));
        }
        let end = Reading::take().unwrap();
        let usage = start.until(&end);
        assert!(usage.own_s >= 0.2, "{usage:?}");
        // A kernel without CONFIG_PARAVIRT_TIME_ACCOUNTING charges stolen time to processes.
        let stolen_s = (end.steal_ns - start.steal_ns) as f64 / 1e9;
        // Two readings of the idle time, each cut off to a tick.
        let cut_off_s = 2.0 * TICK_NS as f64 / 1e9;
        assert!(usage.busy_s + stolen_s >= 0.2 - cut_off_s, "{usage:?}, {stolen_s} s stolen");
        assert!(usage.busy_s <= usage.capacity_s);
    }
}
