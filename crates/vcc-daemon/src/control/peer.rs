//! The process at the other end of a connection.

use std::os::unix::net::UnixStream;

use vcc_net::peer::credentials;

/// For the journal.
pub(super) fn name(stream: &UnixStream) -> String {
    match credentials(stream) {
        Some(libc::ucred { pid, uid, .. }) => format!("process {pid} of user {uid}"),
        None => "an unknown process".into(),
    }
}
