//! Applying a route's locked cwnd (`ip route ... cwnd lock N`) to a flow.
//!
//! Linux takes snd_cwnd_clamp from the route only through its TCP metrics (tcp_init_metrics() in
//! net/ipv4/tcp_metrics.c), and a peer has no metrics until a connection to it has ended. So a
//! connection is opened and closed before the flow's own.

use socket2::Socket;
use std::fs;
use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use vcc_traffic::{Doing, Result, TcpInfo};

const SAVES_NO_METRICS: &str = "/proc/sys/net/ipv4/tcp_no_metrics_save";
const TCP_CLOSE: u8 = 7;

/// The connection before the flow's own. The receiver closes it at once: the end that closes last
/// saves its metrics without a wait in TIME-WAIT.
pub struct Introduction {
    socket: Socket,
    has_answered: bool,
}

impl Introduction {
    /// `socket` is connecting.
    pub fn begin(socket: Socket) -> Result<Self> {
        save_metrics(true)?;
        Ok(Self { socket, has_answered: false })
    }

    /// Continues until the socket would block; true once the connection has ended.
    pub fn advance(&mut self) -> Result<bool> {
        let doing = || "close the connection that creates TCP metrics".to_owned();
        if !self.has_answered {
            match (&self.socket).read(&mut [0]) {
                Ok(_) => {
                    self.socket.shutdown(Shutdown::Write).doing(doing)?;
                    self.has_answered = true;
                }
                Err(error)
                    if [ErrorKind::WouldBlock, ErrorKind::NotConnected].contains(&error.kind()) =>
                {
                    return Ok(false);
                }
                Err(error) => return Err(error).doing(doing),
            }
        }
        let state = TcpInfo::read(&self.socket).doing(|| "read TCP_INFO".into())?.state;
        if state != TCP_CLOSE {
            return Ok(false);
        }
        save_metrics(false).map(|()| true)
    }
}

fn save_metrics(are_saved: bool) -> Result<()> {
    let value = if are_saved { "0" } else { "1" };
    fs::write(SAVES_NO_METRICS, value).doing(|| format!("write '{value}' to {SAVES_NO_METRICS}"))
}
