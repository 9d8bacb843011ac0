use std::fmt::Display;
use std::io;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {doing}: {why}")]
    System { doing: String, why: String },
    #[error("no kernel for the guests: {why}")]
    Kernel { why: String },
    #[error("guest {guest} violates the protocol of its clock or card: {what}")]
    Protocol { guest: usize, what: String },
    #[error("an unidentified guest violates the protocol of its clock: {what}")]
    Stranger { what: String },
    #[error(
        "the sockets of the guests would lie in {directory}, a path of {bytes} bytes, and no more than \
         {most} fit a socket's address: set TMPDIR to a shorter one"
    )]
    LongPath { directory: String, bytes: usize, most: usize },
    #[error(
        "{guests} guests need {needed} open files, and this process may have no more than {most}: \
         raise the hard limit (ulimit -H -n)"
    )]
    Files { guests: usize, needed: u64, most: u64 },
    #[error("guest {guest} did not boot; its console ends with:\n{console}")]
    DidNotBoot { guest: usize, console: String },
    #[error(
        "guest {guest} runs for {wall_s} s without an end at {virtual_ns} ns of its time: in a \
         loop that waits for time to pass? Its console ends with:\n{console}"
    )]
    Spins { guest: usize, wall_s: u64, virtual_ns: u64, console: String },
    #[error(
        "guest {guest} was to end long before {virtual_ns} ns of its time, and goes on; its console \
         ends with:\n{console}"
    )]
    Overdue { guest: usize, virtual_ns: u64, console: String },
    #[error(
        "nothing is left to happen, and guest {guest} has not ended; its console ends with:\n\
         {console}"
    )]
    Stuck { guest: usize, console: String },
    #[error("interrupted")]
    Interrupted,
}

pub(crate) trait Doing<T> {
    /// Adds the action that failed.
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::System { doing: doing(), why: error.to_string() })
    }
}

pub(crate) fn protocol<T>(guest: usize, what: impl Display) -> Result<T> {
    Err(Error::Protocol { guest, what: what.to_string() })
}
