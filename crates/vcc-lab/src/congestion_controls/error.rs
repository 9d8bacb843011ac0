//! Errors: what failed, with which value, and the next step.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("unknown congestion control `{name}`: available are {known}")]
    Unknown { name: String, known: String },

    #[error(
        "cannot register the congestion control `{name}`: {attempts} names for it are taken on this machine"
    )]
    NamesTaken { name: String, attempts: usize },

    #[error(transparent)]
    Guest(#[from] vcc_guest::Error),
}
