//! The run time of programs, which the kernel counts on request.

use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys;

use crate::{Error, Result, tcx};

/// While this exists, the kernel counts the run time of every program on the machine, which costs
/// two reads of the clock per run.
pub struct RunTimes {
    _fd: OwnedFd,
}

impl RunTimes {
    pub fn count() -> Result<Self> {
        // SAFETY: the call takes no pointers.
        let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if fd < 0 {
            let error = io::Error::from_raw_os_error(-fd);
            return Err(Error::system("enable run time statistics of programs", error));
        }
        // SAFETY: the kernel just made this descriptor for us.
        Ok(Self { _fd: unsafe { OwnedFd::from_raw_fd(fd) } })
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

pub(crate) fn of_program(program_id: u32) -> Result<RunTime> {
    let failed = |error| Error::system("read the run time of a program", error);
    let fd = libbpf_rs::Program::fd_from_id(program_id)
        .map_err(|error| Error::system("find an attached program", error))?;
    let info = tcx::program_info(fd.as_fd()).map_err(failed)?;
    Ok(RunTime { runs: info.run_cnt, ns: info.run_time_ns })
}
