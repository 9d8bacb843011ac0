//! Why a text is no export that can be imported.

use serde::Deserialize;

use super::FORMAT;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("not a file of `vcc export`")]
    NotOurs,
    #[error(
        "the file has format {0} of `vcc export`, and this version reads format {FORMAT}: export and \
         import with the same version of vcc"
    )]
    OtherFormat(u32),
    #[error(
        "the file lacks the field `{0}` of its connections: it is of another version of vcc; export \
         and import with the same version"
    )]
    Lacks(&'static str),
    #[error("the file is cut short: copy it again, or export again")]
    CutShort,
    #[error("the file has been changed: its checksum is wrong; copy it again, or export again")]
    Changed,
    #[error("line {0} does not describe a connection: export again")]
    Row(usize),
}

impl Unreadable {
    /// A first line that is not understood may be of another format.
    pub(crate) fn of_header(line: &str) -> Self {
        #[derive(Deserialize)]
        struct Any {
            vcc_export: u32,
        }
        match serde_json::from_str::<Any>(line) {
            Ok(Any { vcc_export }) if vcc_export != FORMAT => Self::OtherFormat(vcc_export),
            Ok(_) => Self::Changed,
            Err(_) => Self::NotOurs,
        }
    }
}
