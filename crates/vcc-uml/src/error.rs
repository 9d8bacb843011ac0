use std::fmt::Display;
use std::io;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {doing}: {why}")]
    System { doing: String, why: String },
    #[error("no guest kernel: {why}")]
    Kernel { why: String },
    #[error("guest {guest} violates the protocol of its clock or card: {what}")]
    Protocol { guest: usize, what: String },
    #[error("an unidentified guest violates the protocol of its clock: {what}")]
    Stranger { what: String },
    #[error(
        "the path of the guests' sockets is too long: {directory} has {bytes} bytes, and a socket's \
         address has room for {most}: set TMPDIR to a shorter one"
    )]
    LongPath { directory: String, bytes: usize, most: usize },
    #[error(
        "{guests} guests need {needed} open files, but the hard limit is {most}: raise it \
         (ulimit -H -n)"
    )]
    Files { guests: usize, needed: u64, most: u64 },
    #[error("guest {guest} did not boot; its console ends with:\n{console}")]
    DidNotBoot { guest: usize, console: String },
    #[error(
        "guest {guest} made no progress for {wall_s} s at {virtual_ns} ns of virtual time: a program \
         may poll the clock, which stands still meanwhile. Its console ends with:\n{console}"
    )]
    Spins { guest: usize, wall_s: u64, virtual_ns: u64, console: String },
    #[error(
        "guest {guest} still runs at {virtual_ns} ns of virtual time, long after its planned end; its \
         console ends with:\n{console}"
    )]
    Overdue { guest: usize, virtual_ns: u64, console: String },
    #[error(
        "no events are left, but guest {guest} has not ended; its console ends with:\n{console}"
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
