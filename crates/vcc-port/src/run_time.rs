//! The run time of programs, which the kernel counts on request.

use std::fs;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libbpf_rs::libbpf_sys;

use crate::{Error, Result, tcx};

/// While this exists, the kernel counts the run time of every program on the machine, which costs
/// two reads of the clock per run. Requires CAP_SYS_ADMIN.
pub struct RunTimes {
    _fd: OwnedFd,
}

/// How many this process has.
static COUNTING: AtomicUsize = AtomicUsize::new(0);

impl RunTimes {
    /// Whether run time is counted, as far as this process can know: not if another one has it counted.
    pub fn are_counted() -> bool {
        let sysctl = || fs::read_to_string("/proc/sys/kernel/bpf_stats_enabled");
        COUNTING.load(Relaxed) > 0 || sysctl().is_ok_and(|value| value.trim() == "1")
    }

    pub fn count() -> Result<Self> {
        // SAFETY: the call takes no pointers.
        let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if fd < 0 {
            let error = io::Error::from_raw_os_error(-fd);
            return Err(Error::system("enable run time statistics of programs", error));
        }
        COUNTING.fetch_add(1, Relaxed);
        // SAFETY: the kernel just made this descriptor for us.
        Ok(Self { _fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }
}

impl Drop for RunTimes {
    fn drop(&mut self) {
        COUNTING.fetch_sub(1, Relaxed);
    }
}

/// The runs and the run time of a port's programs while both were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTime {
    pub runs: u64,
    pub ns: u64,
}

/// Of both programs of a port, with the programs that these call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTimeByDirection {
    pub from_guest: RunTime,
    pub to_guest: RunTime,
}

impl std::ops::Add for RunTime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { runs: self.runs + other.runs, ns: self.ns + other.ns }
    }
}

impl std::ops::Sub for RunTime {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { runs: self.runs - earlier.runs, ns: self.ns - earlier.ns }
    }
}

/// Of the program with this ID. `pinned`: may be it.
pub(crate) fn of_program(program_id: u32, pinned: Option<OwnedFd>) -> Result<RunTime> {
    let failed = |error| Error::system("read the run time of a program", error);
    let time =
        |info: libbpf_sys::bpf_prog_info| RunTime { runs: info.run_cnt, ns: info.run_time_ns };
    if let Some(program) = pinned {
        let info = tcx::program_info(program.as_fd()).map_err(failed)?;
        // Another version of vcc may have replaced the program, and left what was pinned.
        if info.id == program_id {
            return Ok(time(info));
        }
    }
    let fd = libbpf_rs::Program::fd_from_id(program_id)
        .map_err(|error| Error::system("find an attached program", error))?;
    tcx::program_info(fd.as_fd()).map(time).map_err(failed)
}
