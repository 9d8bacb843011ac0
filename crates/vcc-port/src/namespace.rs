//! Network namespaces without names, which end when nobody holds them.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::thread;

/// A network namespace. It exists while this process holds it, and ends with the process at the
/// latest.
pub struct Netns {
    file: File,
}

impl Netns {
    pub fn create() -> io::Result<Self> {
        on_own_thread(|| {
            unshare(libc::CLONE_NEWNET)?;
            Self::current()
        })
    }

    /// The namespace of the calling thread.
    pub fn current() -> io::Result<Self> {
        Ok(Self { file: File::open("/proc/thread-self/ns/net")? })
    }

    /// Runs `work` inside, on a thread of its own. Sockets that `work` creates stay inside, and
    /// commands that it starts run inside.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_own_thread(|| {
            self.enter()?;
            Ok(work())
        })
    }

    /// Moves the calling thread into the namespace.
    fn enter(&self) -> io::Result<()> {
        // SAFETY: the call takes no pointers, and the descriptor is open.
        if unsafe { libc::setns(self.file.as_raw_fd(), libc::CLONE_NEWNET) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// A path by which other programs can open the namespace while this process holds it.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }
}

/// Runs `work` on a thread with a network namespace and a /sys/fs/bpf of its own, which end when it
/// returns. Commands that it starts run inside as well.
pub fn isolated<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    Netns::create()?.inside(|| {
        unshare(libc::CLONE_NEWNS)?;
        mount(None, c"/", libc::MS_REC | libc::MS_PRIVATE)?;
        // Without what is mounted below the other one.
        mount(Some(c"sysfs"), c"/sys", 0)?;
        crate::bpffs::mount().map_err(io::Error::other)?;
        Ok(work())
    })?
}

fn mount(filesystem: Option<&CStr>, place: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    let filesystem = filesystem.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: all strings end in NUL and outlive the call.
    if unsafe { libc::mount(filesystem, place.as_ptr(), filesystem, flags, ptr::null()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Namespaces and priorities are properties of a thread: what `work` changes ends with its thread.
pub(crate) fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Gives the calling thread new namespaces.
fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes no pointers.
    if unsafe { libc::unshare(flags) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
