//! Running the program `sweep` of the datapath: it visits all flows of a port, or starts the timer
//! that turns the port's wheel, which visits each flow when it is due.

use std::io;
use std::os::fd::BorrowedFd;
use std::thread;
use std::time::{Duration, Instant};

use vcc_engine::sys;

use crate::test_run::{self, Context, RunOutput};
use crate::{Error, Result};

/// BPF_PROG_TEST_RUN requires a frame; the program ignores it.
const FRAME_BYTES: usize = 64;

/// The operation on every flow.
#[derive(Clone, Copy)]
pub(crate) enum Sweep {
    /// Bring it under the edition of the policy in force, unless it is in its handshake.
    Judge,
    /// Bring it under that edition in any case.
    Settle,
    /// Count it if its connection depends on the translation.
    Count,
    Forget,
    /// Let it continue by another underlay, if it has the first one (engine/policy_change.h).
    Move {
        from: u8,
        to: u8,
    },
}

/// How long a CPU may hold a flow that all others wait for.
const HELD_MAX: Duration = Duration::from_secs(5);
const HELD_PAUSE: Duration = Duration::from_millis(1);

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

/// Lets the wheel of a port without flows turn. Without that no flow would ever be removed.
pub(crate) fn open(program: BorrowedFd<'_>, port: u32) -> Result<()> {
    start_timer(program, port, sys::OPEN_MARK)
}

/// Lets this program's version of what turns a port's wheel do so.
pub(crate) fn renew(program: BorrowedFd<'_>, port: u32) -> Result<()> {
    start_timer(program, port, sys::RENEW_MARK)
}

fn start_timer(program: BorrowedFd<'_>, port: u32, mark: u32) -> Result<()> {
    let start = || match run_once(program, port, mark, [0; 2], 0)?.return_value {
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

/// Stops a port's wheel.
pub(crate) fn close(program: BorrowedFd<'_>, port: u32) -> Result<()> {
    let closed = run_once(program, port, sys::CLOSE_MARK, [0; 2], 0);
    closed.map(drop).map_err(|e| Error::system("stop the timer of a port", e))
}

/// Returns how many flows there were, or were counted.
pub(crate) fn run(program: BorrowedFd<'_>, port: u32, what: Sweep) -> Result<u32> {
    let mark = match what {
        Sweep::Judge => 0,
        Sweep::Settle => sys::SETTLE_MARK,
        Sweep::Count => sys::COUNT_MARK,
        Sweep::Forget => sys::FORGET_MARK,
        Sweep::Move { .. } => sys::MOVE_MARK,
    };
    let underlays = match what {
        Sweep::Move { from, to } => u32::from(from) << 8 | u32::from(to),
        _ => 0,
    };
    const DOING: &str = "visit all flows of a port";
    let mut from = [0; 2];
    let mut judged = 0;
    let mut progress = Instant::now();
    // Each run visits a part, so that none holds a CPU for long.
    while from[0] < sys::QUEUES {
        let output =
            run_once(program, port, mark, from, underlays).map_err(|e| Error::system(DOING, e))?;
        judged += output.return_value as u32;
        let next = [sys::CB_SWEEP_QUEUE, sys::CB_SWEEP_AT].map(|word| output.cb[word as usize]);
        if next != from {
            progress = Instant::now();
        } else if progress.elapsed() > HELD_MAX {
            let why = "a connection is held by a CPU: try again".into();
            return Err(Error::System { doing: DOING.into(), why });
        } else {
            thread::sleep(HELD_PAUSE);
        }
        from = next;
    }
    Ok(judged)
}

fn run_once(
    program: BorrowedFd<'_>,
    port: u32,
    mark: u32,
    from: [u32; 2],
    underlays: u32,
) -> io::Result<RunOutput> {
    let mut context = Context { mark, ..Context::default() };
    context.cb[sys::CB_PORT as usize] = port;
    context.cb[sys::CB_SWEEP_QUEUE as usize] = from[0];
    context.cb[sys::CB_SWEEP_AT as usize] = from[1];
    context.cb[sys::CB_SWEEP_UNDERLAYS as usize] = underlays;
    test_run::run(program, &[0; FRAME_BYTES], context)
}
