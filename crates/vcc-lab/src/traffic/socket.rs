//! Sockets of guests, and what the kernel tells about a connection.

use crate::error::{Doing, Result};
use crate::system::check;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// TCPI_OPT_ECN of linux/tcp.h: ECN was negotiated.
const OPTION_ECN: u8 = 8;

/// A listener in the namespace that the calling thread is in.
pub fn listen(address: SocketAddr, congestion_control: &str) -> Result<Socket> {
    let doing = || format!("listen at {address}");
    let listener = Socket::from(TcpListener::bind(address).doing(doing)?);
    listener.set_read_timeout(Some(CONNECT_TIMEOUT)).doing(doing)?;
    set_congestion_control(&listener, congestion_control)?;
    Ok(listener)
}

/// A connection from the namespace that the calling thread is in. The congestion control is set
/// before the handshake, so that its wishes for ECN count there.
pub fn connect(to: SocketAddr, congestion_control: &str) -> Result<Socket> {
    let doing = || format!("connect to {to}");
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP));
    let socket = socket.doing(doing)?;
    set_congestion_control(&socket, congestion_control)?;
    socket.connect_timeout(&SockAddr::from(to), CONNECT_TIMEOUT).doing(doing)?;
    socket.set_nonblocking(true).doing(doing)?;
    Ok(socket)
}

/// The next connection that the listener has.
pub fn accept(listener: &Socket) -> Result<Socket> {
    let doing = || "accept a connection".to_owned();
    let (socket, _) = listener.accept().doing(doing)?;
    socket.set_nonblocking(true).doing(doing)?;
    Ok(socket)
}

fn set_congestion_control(socket: &Socket, name: &str) -> Result<()> {
    socket
        .set_tcp_congestion(name.as_bytes())
        .doing(|| format!("use the congestion control '{name}' (does this kernel have it?)"))
}

/// `struct tcp_info` of linux/tcp.h, up to the fields of Linux 5.4.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct TcpInfo {
    state: u8,
    ca_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    options: u8,
    scales: u8,
    limits: u8,
    rto_us: u32,
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
    bytes_acked: u64,
    bytes_received: u64,
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
    pub fn of(socket: &Socket) -> io::Result<Self> {
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

    pub fn has_ecn(&self) -> bool {
        self.options & OPTION_ECN != 0
    }

    /// What the sender may have in flight: the lesser of its own window and the peer's.
    pub fn send_window_bytes(&self) -> u64 {
        let own = u64::from(self.snd_cwnd_segs) * u64::from(self.snd_mss_bytes);
        own.min(u64::from(self.snd_wnd_bytes))
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

    #[test]
    fn the_lesser_window_counts() {
        let info = TcpInfo {
            snd_mss_bytes: 1448,
            snd_cwnd_segs: 10,
            snd_wnd_bytes: 20_000,
            ..TcpInfo::default()
        };
        assert_eq!(info.send_window_bytes(), 14_480);
        assert_eq!(TcpInfo { snd_wnd_bytes: 4344, ..info }.send_window_bytes(), 4344);
    }
}
