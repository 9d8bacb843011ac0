//! A thread that turns wheels.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use libbpf_rs::{MapCore, MapHandle};
use vcc_engine::sys;

use crate::batch::Batches;
use crate::test_run::{self, Context};
use crate::{Error, Result, clock};

/// A deadline may be brought forward while the thread sleeps, and waits for so long then.
const SLEEP_MAX: Duration = Duration::from_millis(16);
/// The datapath's times are in milliseconds.
const SLEEP_MIN: Duration = Duration::from_millis(1);

/// BPF_PROG_TEST_RUN requires a frame; the program ignores it.
const FRAME_BYTES: usize = 64;
const DOING: &str = "turn the wheels of the ports";

/// The timers of a host, which the kernel does not fire.
pub(crate) struct Timers {
    map: MapHandle,
    count: usize,
    program: Box<dyn Fn() -> io::Result<OwnedFd> + Send>,
}

impl Timers {
    /// `program` opens the one that does what a timer would do.
    pub(crate) fn new(
        map: MapHandle,
        program: impl Fn() -> io::Result<OwnedFd> + Send + 'static,
    ) -> Self {
        let count = map.max_entries() as usize;
        Self { map, count, program: Box::new(program) }
    }

    /// Does what the timers that are due would do. Returns how long it is until the next one is.
    pub(crate) fn run(&self) -> io::Result<Duration> {
        let mut timers = self.read()?;
        let is_due = |(_, fires_ms): &(u32, u32)| ms_until(*fires_ms) <= 0;
        let due: Vec<u32> =
            timers.iter().filter(|it| is_due(it)).map(|(number, _)| *number).collect();
        if !due.is_empty() {
            let program = (self.program)()?;
            for number in due {
                let mut context = Context::default();
                context.cb[sys::CB_PORT as usize] = number;
                test_run::run(program.as_fd(), &[0; FRAME_BYTES], context)?;
            }
            timers = self.read()?;
        }
        let next = timers.into_iter().map(|(_, fires_ms)| ms_until(fires_ms)).min();
        Ok(Duration::from_millis(next.unwrap_or(i32::MAX).max(0) as u64))
    }

    /// The numbers of the timers that ports use, and when they are due.
    fn read(&self) -> io::Result<Vec<(u32, u32)>> {
        let mut timers = Vec::new();
        let mut batches = Batches::new(&self.map, self.count);
        while let Some(batch) = batches.next()? {
            timers.extend(batch.filter_map(|(number, timer)| timer_of(number, timer)));
        }
        Ok(timers)
    }
}

/// Of a struct vcc_timer (datapath/maps.h); none if no port uses it.
fn timer_of(number: &[u8], timer: &[u8]) -> Option<(u32, u32)> {
    const PORTS_FROM_END: usize = 24;
    const FIRES_FROM_END: usize = 16;
    let ports = &timer[timer.len() - PORTS_FROM_END..][..size_of::<u64>()];
    let fires_ms = &timer[timer.len() - FIRES_FROM_END..][..size_of::<u32>()];
    let word = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().expect("four bytes"));
    ports.iter().any(|byte| *byte != 0).then(|| (word(number), word(fires_ms)))
}

/// Modulo 2^32, as the datapath counts.
fn ms_until(at_ms: u32) -> i32 {
    at_ms.wrapping_sub(clock::monotonic().as_millis() as u32) as i32
}

/// Turns the wheels of a host's ports until it is dropped.
pub struct Turning {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    ends: bool,
    /// Why the last attempt failed, if it did.
    trouble: Option<String>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turning {
    pub(crate) fn begin(timers: Timers) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("turning".into());
        let thread = thread.spawn(move || turn(&timers, &of_thread));
        let thread = thread.map_err(|e| Error::system("start the thread that turns wheels", e))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Why the wheels do not turn at the moment.
    pub fn trouble(&self) -> Option<String> {
        self.shared.lock().trouble.clone()
    }
}

impl Drop for Turning {
    fn drop(&mut self) {
        self.shared.lock().ends = true;
        self.shared.changed.notify_all();
        // A panic was reported when it happened.
        self.thread.take().map(JoinHandle::join);
    }
}

fn turn(timers: &Timers, shared: &Shared) {
    let mut state = shared.lock();
    while !state.ends {
        drop(state);
        let result = timers.run().map_err(|e| Error::system(DOING, e));
        state = shared.lock();
        let pause = match result {
            Ok(next) => {
                state.trouble = None;
                next.clamp(SLEEP_MIN, SLEEP_MAX)
            }
            Err(error) => {
                state.trouble = Some(error.to_string());
                SLEEP_MAX
            }
        };
        if !state.ends {
            let waited = shared.changed.wait_timeout(state, pause);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
