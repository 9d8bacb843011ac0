//! Raises the limit of open files for many guests.

use std::io;
use std::sync::{Mutex, PoisonError};

use crate::error::{Doing, Error, Result};
use crate::system::check;

/// Files per guest: its clock and their shared page, its card's listener, connection and call
/// descriptor, its memory, and one more during the start.
const EACH: u64 = 8;
/// This process's own files.
const OWN: u64 = 64;

/// Guests of all worlds of this process.
static GUESTS: Mutex<usize> = Mutex::new(0);

/// Room for the files of a world's guests. Given back on drop.
pub(crate) struct Room {
    guests: usize,
}

impl Room {
    /// Raises the soft limit (RLIMIT_NOFILE) as needed, up to the hard limit.
    pub fn make(guests: usize) -> Result<Self> {
        let mut all = GUESTS.lock().unwrap_or_else(PoisonError::into_inner);
        raise_for(*all + guests)?;
        *all += guests;
        Ok(Self { guests })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        *GUESTS.lock().unwrap_or_else(PoisonError::into_inner) -= self.guests;
    }
}

fn raise_for(guests: usize) -> Result<()> {
    let needed = OWN + guests as u64 * EACH;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) })
        .doing(|| "read the limit of open files".into())?;
    if limit.rlim_cur >= needed {
        return Ok(());
    }
    if limit.rlim_max < needed {
        return Err(Error::Files { guests, needed, most: limit.rlim_max });
    }
    limit.rlim_cur = needed;
    raise(&limit).doing(|| format!("raise the limit of open files to {needed}"))
}

fn raise(limit: &libc::rlimit) -> io::Result<()> {
    // SAFETY: `limit` is valid for reads.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) }).map(drop)
}
