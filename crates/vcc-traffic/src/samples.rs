//! What is noted of a flow while it runs.

use serde::{Deserialize, Serialize};

/// The windows of a sender at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Since the start of the window of measurement.
    pub at_us: u64,
    /// Of the stream, with the SYN.
    pub acked_bytes: u64,
    pub cwnd_segs: u32,
    /// The peer's window, as the guest was shown it.
    pub snd_wnd_bytes: u32,
    pub mss_bytes: u32,
}

impl Sample {
    pub fn cwnd_bytes(&self) -> u64 {
        u64::from(self.cwnd_segs) * u64::from(self.mss_bytes)
    }

    /// What may be in flight: the lesser of the two windows.
    pub fn send_window_segs(&self) -> f64 {
        let bytes = self.cwnd_bytes().min(self.snd_wnd_bytes.into());
        bytes as f64 / f64::from(self.mss_bytes)
    }
}

/// Of a ping-pong: how long an answer took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// When the message left, since the start of the window of measurement.
    pub at_us: u64,
    pub took_ns: u64,
}

/// What had been received at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Since the start of the window of measurement.
    pub at_us: u64,
    pub bytes: u64,
}
