//! Errors: what failed, with which value, and the next step.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("unknown congestion control `{name}`: available are {known}")]
    Unknown { name: String, known: String },

    #[error("cannot read the kernel's congestion controls: {source}: check that /proc is mounted")]
    Available { source: io::Error },

    #[error("cannot register the congestion control `{name}`: {why}")]
    Register { name: String, why: String },

    #[error(transparent)]
    Bpf(#[from] vcc_port::Error),
}
