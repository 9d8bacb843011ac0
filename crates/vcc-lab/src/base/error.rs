//! Errors, in words for the person who started the run.

use std::io;
use std::path::PathBuf;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{file}:{line}: {field}: {problem}")]
    Experiment { file: String, line: usize, field: String, problem: String },

    #[error(
        "there is no experiment '{0}': name one that `vcc-lab list` shows, or the path of a file"
    )]
    NoSuchExperiment(String),

    #[error("{experiment} has no case '{case}': it has {known}")]
    NoSuchCase { experiment: String, case: String, known: String },

    #[error("cannot read {path}: {source}", path = path.display())]
    Read { path: PathBuf, source: io::Error },

    #[error(
        "the lab makes network namespaces and real-time threads, which needs root: run it with sudo"
    )]
    NotRoot,

    #[error("this machine lacks {what}, which the lab needs: {remedy}")]
    Missing { what: String, remedy: String },

    #[error(
        "cannot measure how busy the machine is: /proc/stat has no line `cpu` with its idle, iowait \
         and steal times (proc_stat(5)): run the lab where the kernel's own /proc is mounted"
    )]
    CpuTimes,

    #[error("cannot {action}: {source}")]
    System { action: String, source: io::Error },

    #[error("{program} failed in {place}: {output}")]
    Program { program: String, place: String, output: String },

    #[error("cannot build a queue: {0}")]
    Queue(String),

    #[error("flow {flow}: {problem}")]
    Traffic { flow: usize, problem: String },

    #[error("the virtual backend does not support {what}: run it without --backend virtual")]
    Backend { what: String },

    #[error("{what} need virtual time: run it with --backend virtual")]
    VirtualOnly { what: &'static str },

    #[error(
        "the live backend emulates links of up to {most_mbps} Mbit/s, not {rate_mbps}: run it with \
         --backend virtual"
    )]
    TooFast { rate_mbps: u64, most_mbps: u64 },

    #[error("guests in virtual time: {0}")]
    VirtualGuests(String),

    #[error("cannot load the guests' congestion controls: {0}")]
    Guests(String),

    #[error("cannot attach vcc to the port of {host}: {problem}")]
    Attach { host: String, problem: String },

    #[error("interrupted; everything that the run created has been removed")]
    Interrupted,
}

/// Names what was being done when the system refused.
pub trait Doing<T> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::System { action: action(), source })
    }
}
