//! What can go wrong: each says what happened, to what, and what to do.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no congestion control `{name}`: known here are {known}")]
    Unknown { name: String, known: String },

    #[error("cannot read which congestion controls the kernel has ({source}): is /proc mounted?")]
    Available { source: io::Error },

    #[error("cannot register the congestion control `{name}`: {why}")]
    Register { name: String, why: String },

    #[error(transparent)]
    Bpf(#[from] vcc_port::Error),
}
