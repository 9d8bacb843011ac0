//! Why a state is not taken over.

use serde::Deserialize;

use super::FORMAT;
use vcc_engine::FlowKey;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotTakeOver {
    #[error("the migrated state is not one of `vcc domain`: run `vcc domain` on both hosts")]
    NotOurs,
    #[error(
        "the state has format {0} of `vcc domain`, and this version reads format {FORMAT}: install the \
         same version of vcc on both hosts"
    )]
    OtherFormat(u32),
    #[error(
        "the state lacks the `{0}` of its connections: another version of vcc wrote it; install \
         the same version on both hosts"
    )]
    Lacks(&'static str),
    #[error("the state is cut short: move the guest again")]
    CutShort,
    #[error("the state has been changed: its checksum is wrong; move the guest again")]
    Changed,
    #[error("connection {0} in the migrated state is inconsistent; migration refused")]
    Row(usize),
    #[error(
        "connection {0} already exists on this host, with held or promised data: move the guest when \
         that data has been delivered, or restart `vcc domain` here"
    )]
    Here(FlowKey),
    #[error(
        "the port has room for {max} connections, and the guest brings {connections}: raise max_flows"
    )]
    NoRoom { connections: usize, max: usize },
    #[error("the port is draining and accepts no connections")]
    Draining,
    #[error(
        "the guest brings {0} connections with promises, and this process records none: treat the guest as the \
         other host does, with `split`, or `receive = \"buffer\"` or `\"accept\"`, then move it again; if \
         this process does, its log says why it has no ledger"
    )]
    NoLedger(usize),
}

impl CannotTakeOver {
    /// A first line that is not understood may be of another format.
    pub(super) fn of_header(line: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Any {
            vcc_domain: u32,
        }
        match serde_json::from_slice::<Any>(line) {
            Ok(Any { vcc_domain }) if vcc_domain != FORMAT => Self::OtherFormat(vcc_domain),
            Ok(_) => Self::Changed,
            Err(_) => Self::NotOurs,
        }
    }
}
