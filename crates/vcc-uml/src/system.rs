//! Thin wrappers of system calls.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use vcc_net::ready::ready;

pub(crate) fn check(status: libc::c_int) -> io::Result<libc::c_int> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}

/// Error for a protocol violation by a guest.
pub(crate) fn strange(what: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

/// CPUs to which threads of this process are pinned.
static HELD: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Pins the calling thread, and processes that it starts, to one CPU: the current one, unless others are
/// held by fewer threads of this process. Until dropped, by the same thread.
pub(crate) struct OneCpu {
    cpu: usize,
    before: libc::cpu_set_t,
}

impl OneCpu {
    pub fn hold() -> io::Result<Self> {
        // SAFETY: an all-zero cpu_set_t is an empty set.
        let mut before: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: `before` is valid and of the size given; 0 is the calling thread.
        check(unsafe { libc::sched_getaffinity(0, size_of_val(&before), &mut before) })?;
        // SAFETY: takes nothing.
        let current = check(unsafe { libc::sched_getcpu() })? as usize;
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let holders = |cpu: usize| held.iter().filter(|&&it| it == cpu).count();
        // SAFETY: the number is below that of the set's bits.
        let is_allowed = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &before) };
        let allowed = (0..libc::CPU_SETSIZE as usize).filter(is_allowed);
        let cpu = allowed.min_by_key(|&cpu| (holders(cpu), cpu != current)).unwrap_or(current);
        // SAFETY: an all-zero cpu_set_t is an empty set; CPU_SET ignores a CPU beyond the set.
        let one = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            set
        };
        set_affinity(&one)?;
        held.push(cpu);
        Ok(Self { cpu, before })
    }
}

fn set_affinity(set: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: `set` is valid and of the size given; 0 is the calling thread.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(set), set) }).map(drop)
}

impl Drop for OneCpu {
    fn drop(&mut self) {
        // The former CPUs are still allowed, unless the kernel has removed them.
        let _ = set_affinity(&self.before);
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = held.iter().position(|&cpu| cpu == self.cpu) {
            held.swap_remove(place);
        }
    }
}

/// An anonymous file of zeros.
pub(crate) fn memory_file(name: &std::ffi::CStr, bytes: u64) -> io::Result<OwnedFd> {
    // SAFETY: a valid name.
    let fd = check(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: the descriptor was made just now and is nobody else's.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: takes no pointers.
    check(unsafe { libc::ftruncate(fd.as_raw_fd(), bytes as libc::off_t) })?;
    Ok(fd)
}

/// Which of these are readable or have ended. None on timeout or signal.
pub(crate) fn readable<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    patience: Duration,
) -> io::Result<[bool; N]> {
    let places = fds.map(|fd| (fd.as_raw_fd(), libc::POLLIN));
    Ok(ready(places, patience)?.map(|events| events != 0))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn threads_hold_different_cpus() {
        let cpus = thread::available_parallelism().map_or(1, |cpus| cpus.get().min(2));
        let all_hold = Barrier::new(cpus);
        let hold = || {
            let cpu = OneCpu::hold().expect("a CPU");
            all_hold.wait();
            assert_eq!(unsafe { libc::sched_getcpu() }, cpu.cpu as libc::c_int);
            cpu.cpu
        };
        let mut held: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..cpus).map(|_| scope.spawn(hold)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        held.dedup();
        assert_eq!(held.len(), cpus);
        assert!(HELD.lock().expect("no panic").is_empty());
    }
}
