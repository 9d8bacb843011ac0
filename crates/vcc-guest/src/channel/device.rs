//! The device of the channel, opened and read until a signal ends it.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use vcc_channel::{Bad, MESSAGE_BYTES};
use vcc_net::clock::now_ns;
use vcc_net::ready::ready;

use super::follower::{Failure, Follower};
use super::reports::Words;

/// Between two attempts to open the device.
const RETRY: Duration = Duration::from_secs(1);
/// The same after garbage, of which a journal needs no line each second.
const RETRY_AFTER_GARBAGE: Duration = Duration::from_secs(30);
/// The host reports twice a second: after this silence, it is asked again.
const SILENCE: Duration = Duration::from_secs(3);
/// More answers than that do not wait: the host does not read them.
const UNSENT_MAX_BYTES: usize = 64 * MESSAGE_BYTES;

/// Waits are in whole milliseconds, and end none too early.
const GRAIN: Duration = Duration::from_millis(1);

/// What happened on the channel, for the journal.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// The host reports.
    Up,
    Down {
        why: String,
        /// How often it was for what the host sent.
        malformed: u64,
        /// Losses that the host had repaired by then, so that the guest saw none.
        repaired_losses: u64,
    },
}

/// Why the device is read no longer.
enum End {
    Stopped,
    Closed(String),
    Garbage(Bad),
}

/// Follows the device that `open` returns until `stop` is readable, and then leaves no lease. The device is
/// opened again after each end.
///
/// # Errors
/// It cannot be opened at first, or the kernel does not take what the host reports.
pub(crate) fn follow<W: Words>(
    words: W,
    mut open: impl FnMut() -> io::Result<File>,
    stop: &impl AsRawFd,
    mut report: impl FnMut(Heard),
) -> Result<(), FollowError> {
    let stop = stop.as_raw_fd();
    let mut follower = Follower::new(words)?;
    let mut device = open().map_err(FollowError::Open)?;
    let mut malformed = 0;
    loop {
        let end = talk(&mut follower, device, stop, &mut report)?;
        let was_up = follower.is_greeted();
        follower.end()?;
        let (why, retry) = match end {
            End::Stopped => return Ok(()),
            End::Closed(why) => (why, RETRY),
            End::Garbage(bad) => {
                malformed += 1;
                (format!("the host sent {bad}"), RETRY_AFTER_GARBAGE)
            }
        };
        if was_up {
            report(Heard::Down { why, malformed, repaired_losses: follower.repaired_losses() });
        }
        device = loop {
            if ready([(stop, libc::POLLIN)], retry + GRAIN)?[0] != 0 {
                return Ok(());
            }
            if let Ok(device) = open() {
                break device;
            }
        };
    }
}

/// Why the channel cannot be followed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FollowError {
    #[error("{0}")]
    Open(io::Error),
    #[error(transparent)]
    Here(#[from] crate::Error),
    #[error("cannot wait for messages: {0}")]
    Wait(#[from] io::Error),
}

fn talk<W: Words>(
    follower: &mut Follower<W>,
    mut device: File,
    stop: RawFd,
    report: &mut impl FnMut(Heard),
) -> Result<End, FollowError> {
    let mut unsent = Follower::<W>::hello();
    let mut heard_at = Instant::now();
    let mut buffer = [0; 64 * MESSAGE_BYTES];
    loop {
        let writes = if unsent.is_empty() { 0 } else { libc::POLLOUT };
        let places = [(stop, libc::POLLIN), (device.as_raw_fd(), libc::POLLIN | writes)];
        let patience = SILENCE.saturating_sub(heard_at.elapsed()) + GRAIN;
        let [stopped, events] = ready(places, patience)?;
        if stopped != 0 {
            return Ok(End::Stopped);
        }
        if events & libc::POLLOUT != 0 {
            match device.write(&unsent) {
                Ok(bytes) => drop(unsent.drain(..bytes)),
                Err(error) if is_retryable(&error) => {}
                Err(error) => return Ok(End::Closed(error.to_string())),
            }
        }
        if events & libc::POLLIN != 0 {
            let bytes = match device.read(&mut buffer) {
                Ok(0) => return Ok(End::Closed("the host has closed it".into())),
                Ok(bytes) => &buffer[..bytes],
                Err(error) if is_retryable(&error) => continue,
                Err(error) => return Ok(End::Closed(error.to_string())),
            };
            let was_up = follower.is_greeted();
            let answer = match follower.read(bytes, now_ns()) {
                Ok(answer) => answer,
                Err(Failure::Here(error)) => return Err(error.into()),
                Err(Failure::Bad(bad)) => return Ok(End::Garbage(bad)),
            };
            if follower.is_greeted() {
                heard_at = Instant::now();
            }
            if follower.is_greeted() && !was_up {
                report(Heard::Up);
            }
            if unsent.len() + answer.len() <= UNSENT_MAX_BYTES {
                unsent.extend(answer);
            }
        } else if events & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
            return Ok(End::Closed("the host has closed it".into()));
        }
        if heard_at.elapsed() >= SILENCE {
            heard_at = Instant::now();
            if unsent.is_empty() {
                unsent = Follower::<W>::hello();
            }
        }
    }
}

fn is_retryable(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
