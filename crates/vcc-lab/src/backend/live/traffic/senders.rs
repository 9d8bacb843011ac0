//! The senders' sockets, to be looked at from another thread while the traffic runs.

use crate::base::error::{Doing, Result};
use socket2::Socket;
use std::sync::OnceLock;
use vcc_results::result::SenderState;
use vcc_traffic::TcpInfo;

/// One sender's socket, only to observe it: its owner neither reads nor writes.
pub struct SenderView(Socket);

impl SenderView {
    pub(super) fn from_socket(sender: &Socket) -> Result<Self> {
        sender.try_clone().map(Self).doing(|| "duplicate a socket".into())
    }

    pub fn state(&self) -> Result<SenderState> {
        let info = TcpInfo::read(&self.0).doing(|| "read TCP_INFO".into())?;
        Ok(SenderState { acked_bytes: info.bytes_acked, cwnd_segs: info.snd_cwnd_segs })
    }
}

/// Empty until all flows are connected.
#[derive(Default)]
pub struct Senders(OnceLock<Vec<SenderView>>);

impl Senders {
    pub(super) fn announce(&self, senders: Vec<SenderView>) {
        let _ = self.0.set(senders);
    }

    pub fn get(&self, flow: usize) -> Option<&SenderView> {
        self.0.get()?.get(flow)
    }
}
