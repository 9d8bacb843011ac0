//! The fabric's view of each host's ECN, independent of the host's own.

use super::{HostId, frame};

/// Frames shorter than this carry no full segment: acknowledgements, and what RFC 3168 (6.1.4,
/// 6.1.1) keeps from being ECT anyway.
const DATA_FRAME_BYTES: usize = 600;

/// Frames with data that a host has sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ect {
    pub capable: u64,
    pub not_capable: u64,
}

impl Ect {
    /// Retransmissions are not ECT (RFC 3168, 6.1.5), so the majority decides.
    pub fn is_capable(&self) -> bool {
        self.capable > self.not_capable
    }
}

pub(super) struct EctCounters(Vec<Ect>);

impl EctCounters {
    pub fn new(hosts: usize) -> Self {
        Self(vec![Ect::default(); hosts])
    }

    pub fn note(&mut self, from: HostId, frame: &[u8]) {
        if frame.len() < DATA_FRAME_BYTES {
            return;
        }
        match frame::is_ecn_capable(frame) {
            true => self.0[from].capable += 1,
            false => self.0[from].not_capable += 1,
        }
    }

    pub fn take(&mut self) -> Vec<Ect> {
        std::mem::take(&mut self.0)
    }
}
