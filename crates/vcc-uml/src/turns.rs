//! Turns: guests that run together, and this process again when the last of them waits.
//!
//! Two words in a page of all guests and this process, and futexes on them, take the place of a message to
//! each guest and one back (guest/kernel/08-turns.patch). All share one CPU: it changes to each guest once,
//! and back once.

use std::cell::Cell;
use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::shared_page::SharedPage;
use crate::system::check;

const NAME: &CStr = c"vcc-turns";
const BYTES: usize = 4096;
/// Number of guests whose turn has not ended. The last one wakes this process.
const RUNNING: usize = 0;
/// Guests without a turn sleep until this changes.
const ROUND: usize = 4;

pub(crate) struct Turns {
    page: SharedPage,
    /// Guests to wake, one bit for each. Guests 32 apart share a bit, and sleep again if they have no
    /// turn.
    called: Cell<u32>,
}

impl Turns {
    pub fn create() -> io::Result<Self> {
        Ok(Self { page: SharedPage::create(NAME, BYTES)?, called: Cell::new(0) })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.page.fd()
    }

    fn running(&self) -> &AtomicU32 {
        self.page.word(RUNNING)
    }

    /// One more guest will run until it ends its turn here. Before it has the turn.
    pub fn expect_end(&self) {
        self.running().fetch_add(1, Ordering::SeqCst);
    }

    /// A guest that was to end its turn has ended altogether.
    pub fn expect_no_end(&self) {
        self.running().fetch_sub(1, Ordering::SeqCst);
    }

    /// A guest has the turn, and is woken with the others.
    pub fn call(&self, guest: usize) {
        self.called.set(self.called.get() | 1 << (guest % 32));
    }

    /// Wakes the guests that have been called.
    pub fn begin(&self) -> io::Result<()> {
        let called = self.called.take();
        if called == 0 {
            return Ok(());
        }
        let round = self.page.word(ROUND);
        round.fetch_add(1, Ordering::SeqCst);
        let all = i32::MAX as u32;
        futex(round, libc::FUTEX_WAKE_BITSET, all, ptr::null(), called).map(drop)
    }

    /// Waits until no turn is left. False after `patience`, or earlier.
    pub fn await_end(&self, patience: Duration) -> io::Result<bool> {
        let running = self.running();
        let timeout = libc::timespec {
            tv_sec: patience.as_secs() as libc::time_t,
            tv_nsec: patience.subsec_nanos().into(),
        };
        loop {
            let count = running.load(Ordering::SeqCst);
            if count == 0 {
                return Ok(true);
            }
            match futex(running, libc::FUTEX_WAIT, count, &timeout, 0) {
                Ok(_) => {}
                // Another guest has ended its turn meanwhile.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}

fn futex(
    word: &AtomicU32,
    operation: libc::c_int,
    value: u32,
    timeout: *const libc::timespec,
    bits: u32,
) -> io::Result<libc::c_int> {
    let nothing = ptr::null::<u32>();
    // SAFETY: the word lives during the call, and so does the timeout, unless it is null.
    let status = unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, timeout, nothing, bits)
    };
    check(status as libc::c_int)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn the_last_end_of_a_turn_wakes_the_calendar() {
        let turns = Turns::create().expect("a page");
        assert!(turns.await_end(Duration::ZERO).expect("no error"));
        turns.expect_end();
        turns.expect_end();
        assert!(!turns.await_end(Duration::from_millis(1)).expect("no error"));
        turns.expect_no_end();
        let running = turns.running();
        thread::scope(|scope| {
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(10));
                running.fetch_sub(1, Ordering::SeqCst);
                futex(running, libc::FUTEX_WAKE, 1, ptr::null(), 0).expect("woken");
            });
            assert!(turns.await_end(Duration::from_secs(60)).expect("no error"));
        });
    }

    #[test]
    fn guests_that_are_called_are_woken_together() {
        let turns = Turns::create().expect("a page");
        let round = turns.page.word(ROUND);
        turns.begin().expect("nobody is called");
        assert_eq!(round.load(Ordering::Relaxed), 0);
        turns.call(3);
        turns.call(36);
        assert_eq!(turns.called.get(), 1 << 3 | 1 << 4);
        turns.begin().expect("woken");
        assert_eq!((round.load(Ordering::Relaxed), turns.called.get()), (1, 0));
    }
}
