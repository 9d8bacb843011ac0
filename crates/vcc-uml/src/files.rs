//! Room for the open files of many guests.

use std::io;

use crate::error::{Doing, Error, Result};
use crate::system::check;

/// Of each guest: its clock and the page that they share, its card's listener, line and calls, its
/// memory, and one more while it starts.
const EACH: u64 = 8;
/// This process's own.
const OWN: u64 = 64;

/// Raises the soft limit (RLIMIT_NOFILE) as far as so many guests need it and the hard one lets it.
pub(crate) fn make_room(guests: usize) -> Result<()> {
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
