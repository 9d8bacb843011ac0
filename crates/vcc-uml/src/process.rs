//! A guest's process, in a PID namespace of its own: it ends with all its children, and with the
//! thread that started it. However this process ends, no guest is left.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::error::{Doing, Result};
use crate::system::check;

/// Directory of a guest's memory: a tmpfs that permits execution.
const MEMORY_DIRECTORY: &str = "/dev/shm";
/// Number of console lines shown with an error.
const LAST_LINES: usize = 16;

pub(crate) struct Process {
    child: Child,
    console: PathBuf,
}

impl Process {
    /// Runs in `directory`; paths in the arguments are relative to it, because the command line
    /// contributes to the guest's entropy.
    pub fn start(
        kernel: &Path,
        arguments: &[String],
        directory: &Path,
        name: &str,
    ) -> Result<Self> {
        let console = directory.join(format!("{name}.console"));
        let doing = || format!("start {name}");
        let output = File::create(&console).doing(|| format!("write {}", console.display()))?;
        let errors = output.try_clone().doing(doing)?;
        let mut command = Command::new(kernel);
        command
            .args(arguments)
            .current_dir(directory)
            .env_clear()
            .env("HOME", "/")
            .env("TMPDIR", MEMORY_DIRECTORY)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        // SAFETY: only system calls between fork and exec, and they touch no memory of others.
        unsafe { command.pre_exec(|| make_deterministic().and_then(|()| leave_first_behind())) };
        let child = in_pid_namespace(|| command.spawn()).doing(doing)?;
        Ok(Self { child, console })
    }

    /// The console output.
    pub fn console(&self) -> String {
        match fs::read(&self.console) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => format!("(unreadable: {error})"),
        }
    }

    pub fn last_lines(&self) -> String {
        last_lines(self.console().lines())
    }

    /// Have all of its processes ended?
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }
}

/// The end of a console, for error messages.
pub fn last_lines<'a>(console: impl Iterator<Item = &'a str>) -> String {
    // A panic's backtrace is less useful than the lines before it.
    let lines: Vec<&str> = console.map(str::trim).filter(|line| !line.starts_with("[<")).collect();
    match lines.len() {
        0 => "(nothing)".into(),
        count => lines[count.saturating_sub(LAST_LINES)..].join("\n"),
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already, and a failure to kill it cannot be handled.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process that `start` starts is the first of a new PID namespace.
fn in_pid_namespace<T>(start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = File::open("/proc/thread-self/ns/pid_for_children")?;
    // SAFETY: takes no pointers; only children of this thread are concerned.
    check(unsafe { libc::unshare(libc::CLONE_NEWPID) })?;
    let started = start();
    // SAFETY: takes no pointers; only children of this thread are concerned.
    check(unsafe { libc::setns(before.as_fd().as_raw_fd(), libc::CLONE_NEWPID) })?;
    started
}

/// Runs in the child. Removes the host's randomness: fixed addresses, and no getrandom(). A guest's
/// random numbers then derive from its inputs, which are the same in every run.
fn make_deterministic() -> io::Result<()> {
    // SAFETY: none of these takes pointers, but the last, to a filter that lives until it returns.
    unsafe {
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        check(libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong))?;
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        let mut filter = no_getrandom();
        let program =
            libc::sock_fprog { len: filter.len() as libc::c_ushort, filter: filter.as_mut_ptr() };
        check(libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER as libc::c_ulong,
            &raw const program,
        ))?;
    }
    Ok(())
}

/// Runs in the child, the first process of its namespace, and continues in a child of that: the
/// kernel spares a namespace's first process the signals by which a panicking kernel ends itself.
/// When the guest ends, the first process ends, and with it all that the guest has left behind.
fn leave_first_behind() -> io::Result<()> {
    // SAFETY: this process has one thread, and nothing but system calls follows in either.
    match check(unsafe { libc::fork() })? {
        0 => Ok(()),
        guest => {
            // The parent waits for the end of a pipe that is open here too.
            // SAFETY: no file is used after this.
            let closed = unsafe { libc::close_range(0, libc::c_uint::MAX, 0) };
            // Orphans of the guest are reaped here too; an error means that none is left.
            // SAFETY: takes no pointers but the null one.
            let next = || unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) };
            while closed == 0 && ![guest, -1].contains(&next()) {}
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(0) }
        }
    }
}

/// Seccomp filter: ENOSYS for getrandom, everything else is allowed.
fn no_getrandom() -> [libc::sock_filter; 4] {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const JUMP: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    // The system call's number is the first of struct seccomp_data.
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    [
        step(LOAD, 0, 0, 0),
        step(JUMP, 0, 1, libc::SYS_getrandom as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}
