//! Running the program `sweep` of the datapath: it visits all flows of a port, or starts the timer
//! that visits each flow when it is due.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::Duration;

use libbpf_rs::{ProgramMut, libbpf_sys};
use vcc_engine::sys;

use crate::test_run::{self, Context};
use crate::{Error, Result};

/// BPF_PROG_TEST_RUN requires a frame; the program ignores it.
const FRAME_BYTES: usize = 64;

/// A descriptor of the program, which may outlive the object that it was loaded with.
pub(crate) fn keep(program: &ProgramMut<'_>) -> Result<OwnedFd> {
    program.as_fd().try_clone_to_owned().map_err(|e| Error::system("keep a program", e))
}

pub(crate) fn pin(program: &OwnedFd, path: &Path) -> libbpf_rs::Result<()> {
    let c_path = std::ffi::CString::new(path.as_os_str().as_encoded_bytes())
        .map_err(|e| libbpf_rs::Error::from(io::Error::from(e)))?;
    // SAFETY: an open descriptor, and a string that ends in NUL and outlives the call.
    let status = unsafe { libbpf_sys::bpf_obj_pin(program.as_raw_fd(), c_path.as_ptr()) };
    if status < 0 {
        return Err(libbpf_rs::Error::from_raw_os_error(-status));
    }
    Ok(())
}

/// The operation on every flow.
#[derive(Clone, Copy)]
pub(crate) enum Sweep {
    /// Bring it under the edition of the policy in force, unless it is in its handshake.
    Judge,
    /// Bring it under that edition in any case.
    Settle,
    Forget,
}

/// The kernel allocates timers from a reserve, which runs out for a moment when many are created at
/// once.
const TIMER_PAUSES: [Duration; 6] = [
    Duration::from_millis(1),
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// Starts the port's timer, or makes a running one call this version's program. Without the timer
/// no flow would ever be removed.
pub(crate) fn start_timer(program: &OwnedFd) -> Result<()> {
    let start = || match run_marked(program, sys::START_MARK)? as i32 {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(-errno)),
    };
    let mut pauses = TIMER_PAUSES.iter();
    loop {
        let result = start();
        let lacks_memory = |e: &io::Error| e.raw_os_error() == Some(libc::ENOMEM);
        match pauses.next().filter(|_| result.as_ref().is_err_and(lacks_memory)) {
            Some(pause) => thread::sleep(*pause),
            None => return result.map_err(|e| Error::system("start the timer of a port", e)),
        }
    }
}

/// Returns how many flows there were.
pub(crate) fn run(program: &OwnedFd, what: Sweep) -> Result<u32> {
    let mark = match what {
        Sweep::Judge => 0,
        Sweep::Settle => sys::SETTLE_MARK,
        Sweep::Forget => sys::FORGET_MARK,
    };
    run_marked(program, mark).map_err(|e| Error::system("visit all flows of a port", e))
}

fn run_marked(program: &OwnedFd, mark: u32) -> io::Result<u32> {
    let context = Context { mark, ..Context::default() };
    let output = test_run::run(program.as_fd(), &[0; FRAME_BYTES], context)?;
    Ok(output.return_value as u32)
}
