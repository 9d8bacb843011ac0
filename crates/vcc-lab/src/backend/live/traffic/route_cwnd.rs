//! Making the kernel heed a route's locked cwnd (`ip route ... cwnd lock N`).
//!
//! Linux takes snd_cwnd_clamp from the route by way of its TCP metrics alone (tcp_init_metrics() of
//! net/ipv4/tcp_metrics.c), and those know nothing of a peer before a connection to it has ended.
//! So one is made and ended.

use super::socket::{accept, connect};
use crate::backend::live::hosts::Netns;
use crate::base::error::{Doing, Error, Result};
use socket2::Socket;
use std::net::{Shutdown, SocketAddr};
use std::thread::sleep;
use std::time::{Duration, Instant};
use vcc_traffic::TcpInfo;

const SAVES_NO_METRICS: &str = "ipv4/tcp_no_metrics_save";
const PATIENCE: Duration = Duration::from_secs(10);
const TCP_CLOSE: u8 = 7;

pub fn make_known(
    guest: &Netns,
    listener: &Socket,
    to: SocketAddr,
    congestion_control: &str,
) -> Result<()> {
    guest.set(&[(SAVES_NO_METRICS, "0")])?;
    let sender = guest.inside(|| connect(to, congestion_control))?;
    // The end that closes last has its metrics saved at once, not after the wait in TIME-WAIT.
    drop(accept(listener)?);
    sender.shutdown(Shutdown::Write).doing(|| "end a connection".into())?;
    let began = Instant::now();
    while TcpInfo::read(&sender).doing(|| "read TCP_INFO".into())?.state != TCP_CLOSE {
        if began.elapsed() > PATIENCE {
            let problem = "the connection that teaches the kernel its route does not end";
            return Err(Error::Traffic { flow: 0, problem: problem.into() });
        }
        sleep(Duration::from_millis(1));
    }
    guest.set(&[(SAVES_NO_METRICS, "1")])
}
