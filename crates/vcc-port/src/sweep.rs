//! Running the datapath's `sweep`: a look at all flows of a port at once, or the start of the timer that
//! looks at each when its time has come.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::Duration;

use libbpf_rs::{ProgramMut, libbpf_sys};
use vcc_engine::sys;

use crate::datapath::{SK_BUFF_BYTES, SK_BUFF_MARK};
use crate::{Error, Result};

/// The kernel wants a frame to run the program on; it is not looked at.
const FRAME_BYTES: usize = 64;

/// The program by itself, which may outlive what it was loaded with.
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

/// What becomes of every flow.
#[derive(Clone, Copy)]
pub(crate) enum Sweep {
    /// It comes under the edition of the policy that holds; a handshake ends as it began.
    Judge,
    /// It does, also in the middle of its handshake.
    Settle,
    Forget,
}

/// The kernel makes timers from memory that it has at hand, which is used up for a moment where many
/// are made at once.
const TIMER_PAUSES: [Duration; 6] = [
    Duration::from_millis(1),
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// Starts the port's timer, or gives the one that runs this version's program. Without it no flow
/// would ever end.
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
            None => return result.map_err(|e| Error::system("make the timer of a port", e)),
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
    run_marked(program, mark).map_err(|e| Error::system("look at all flows of a port", e))
}

fn run_marked(program: &OwnedFd, mark: u32) -> io::Result<u32> {
    let frame = [0u8; FRAME_BYTES];
    let mut context = [0u8; SK_BUFF_BYTES];
    context[SK_BUFF_MARK..][..4].copy_from_slice(&mark.to_ne_bytes());
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
        data_in: frame.as_ptr().cast(),
        data_size_in: frame.len() as u32,
        ctx_in: context.as_ptr().cast(),
        ctx_size_in: context.len() as u32,
        ..Default::default()
    };
    // SAFETY: an open descriptor; frame and context live as long as the call and are only read.
    let status = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &mut options) };
    if status < 0 {
        return Err(io::Error::from_raw_os_error(-status));
    }
    Ok(options.retval)
}
