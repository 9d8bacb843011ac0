//! A host's options: its configuration, and what the handshake negotiated.

/// A sender's reaction to a window that ends within a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runts {
    /// Waits for room for a full segment (RFC 9293, 3.8.6.2.1), as lwIP and smoltcp do.
    Never,
    /// Sends a runt behind a whole segment (tcp_snd_wnd_test), unless another one is in flight:
    /// Nagle's algorithm in Linux (tcp_nagle_check with tcp_minshall_check).
    One,
    /// Sends a runt behind a whole segment: TCP_NODELAY in Linux.
    Always,
    /// Sends a runt regardless of what it has sent before.
    Alone,
}

#[derive(Clone)]
pub struct HostConfig {
    /// Active open.
    pub opens: bool,
    pub ecn: bool,
    /// Reduces by [`Native`](super::super::native::Native)'s PRR.
    pub native: bool,
    pub iss: u32,
    pub options: u16,
    pub mss_option: u16,
    pub wscale: u8,
    /// Free option space in its headers, without SACK blocks.
    pub option_room_bytes: u8,
    pub initial_cwnd_segs: u32,
    pub gso_segs: u32,
    pub runts: Runts,
    /// Sends tail loss probes.
    pub probes_tail: bool,
    pub fin_on_data: bool,
    pub total_bytes: i64,
    /// The application writes `burst_bytes`, then pauses.
    pub burst_bytes: i64,
    pub pause_us: u64,
    /// Receive buffer, and the application's reading: (reads for, then stalls for).
    pub capacity_bytes: i64,
    pub reading_us: (u64, u64),
    /// The receiver sometimes shrinks its window.
    pub shrinks: bool,
    /// Resets the connection when this offset is acknowledged.
    pub resets_at: Option<i64>,
}

pub struct Negotiated {
    pub(super) peer_iss: u32,
    pub(super) peer_wscale: u8,
    pub(super) use_wscale: bool,
    pub(super) use_sack: bool,
    pub mss_bytes: i64,
    pub(super) ecn_on: bool,
}

impl Default for Negotiated {
    fn default() -> Self {
        Negotiated {
            peer_iss: 0,
            peer_wscale: 0,
            use_wscale: false,
            use_sack: false,
            // RFC 9293, 3.7.1.
            mss_bytes: 536,
            ecn_on: false,
        }
    }
}
