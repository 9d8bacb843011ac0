//! TCP_INFO of a connection.

use crate::system::check;
use std::io;
use std::os::fd::AsRawFd;

/// TCPI_OPT_ECN of linux/tcp.h: ECN was negotiated.
const OPTION_ECN: u8 = 8;

/// `struct tcp_info` of linux/tcp.h, up to the fields of Linux 5.4. Counts are since the connection
/// began.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct TcpInfo {
    pub state: u8,
    ca_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    options: u8,
    scales: u8,
    limits: u8,
    pub rto_us: u32,
    ato_us: u32,
    pub snd_mss_bytes: u32,
    rcv_mss_bytes: u32,
    pub unacked_segs: u32,
    sacked_segs: u32,
    lost_segs: u32,
    retrans_segs: u32,
    fackets: u32,
    times_ms: [u32; 4],
    pmtu_bytes: u32,
    rcv_ssthresh_bytes: u32,
    pub rtt_us: u32,
    rttvar_us: u32,
    snd_ssthresh_segs: u32,
    pub snd_cwnd_segs: u32,
    advmss_bytes: u32,
    reordering: u32,
    rcv_rtt_us: u32,
    rcv_space_bytes: u32,
    pub total_retrans_segs: u32,
    pacing_rates: [u64; 2],
    pub bytes_acked: u64,
    pub bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt_us: u32,
    data_segs_in: u32,
    pub data_segs_out: u32,
    delivery_rate: u64,
    limited_us: [u64; 3],
    delivered_segs: u32,
    delivered_ce_segs: u32,
    bytes_sent: u64,
    pub retrans_bytes: u64,
    dsack_dups: u32,
    reord_seen: u32,
    rcv_ooopack: u32,
    pub snd_wnd_bytes: u32,
}

impl TcpInfo {
    /// # Errors
    /// getsockopt(2) failed: this is not a TCP socket.
    pub fn read(socket: &impl AsRawFd) -> io::Result<Self> {
        let mut info = Self::default();
        let mut length = size_of::<Self>() as libc::socklen_t;
        // SAFETY: `info` is plain data of `length` bytes; the kernel writes no more than that.
        check(unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                (&raw mut info).cast(),
                &mut length,
            )
        })?;
        Ok(info)
    }

    /// Whether both ends have agreed on ECN.
    pub fn has_ecn(&self) -> bool {
        self.options & OPTION_ECN != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// Offsets as of linux/tcp.h on 64-bit machines.
    #[test]
    fn lies_in_memory_as_the_kernel_writes_it() {
        assert_eq!(offset_of!(TcpInfo, rtt_us), 68);
        assert_eq!(offset_of!(TcpInfo, snd_cwnd_segs), 80);
        assert_eq!(offset_of!(TcpInfo, total_retrans_segs), 100);
        assert_eq!(offset_of!(TcpInfo, data_segs_out), 156);
        assert_eq!(offset_of!(TcpInfo, retrans_bytes), 208);
        assert_eq!(offset_of!(TcpInfo, snd_wnd_bytes), 228);
        assert_eq!(size_of::<TcpInfo>(), 232);
    }
}
