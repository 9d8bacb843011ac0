//! Other traffic that fills the queue toward the peer: datagrams of the host, as many as its socket holds.

use super::network::{Network, PEER};
use super::turns::{self, Part};
use crate::base::error::{Doing, Result};
use crate::base::system::check;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

const PORT: u16 = 5009;
/// Full frames of 1514 bytes.
const DATAGRAM_BYTES: usize = 1472;
const FRAME_BYTES: u64 = 1514;
/// What the kernel charges the socket for such a frame.
const CHARGED_BYTES: u64 = 2304;

/// Sends until it is dropped.
pub struct Crowd {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
    /// It takes the datagrams, and nobody reads them.
    _sink: UdpSocket,
}

impl Crowd {
    /// Keeps a queue of about this delay.
    pub fn start(network: &Network, rate_mbps: u32, queue_ms: u32) -> Result<Self> {
        let queue_bytes = u64::from(rate_mbps) * u64::from(queue_ms) * 1000 / 8;
        // A socket sends again when half of it is free, so three quarters of it are in the queue.
        let charged_bytes = queue_bytes * 4 / 3 / FRAME_BYTES * CHARGED_BYTES;
        let _sink = network.peer.inside(|| {
            UdpSocket::bind((PEER, PORT)).doing(|| "make a socket for the crowd's peer".into())
        })?;
        let socket = network
            .host
            .inside(|| socket(charged_bytes).doing(|| "make a socket for the crowd".into()))?;
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let send = move || {
            turns::place(0, Part::Crowd).doing(|| "get real-time priority".into())?;
            let datagram = [0; DATAGRAM_BYTES];
            while !seen.load(Ordering::Relaxed) {
                socket.send(&datagram).doing(|| "send a datagram of the crowd".into())?;
            }
            Ok(())
        };
        let thread = thread::Builder::new().name("crowd".into()).spawn(send);
        let thread = Some(thread.doing(|| "start the crowd's thread".into())?);
        Ok(Self { stop, thread, _sink })
    }

    /// # Errors
    /// It no longer sends.
    pub fn check(&mut self) -> Result<()> {
        match self.thread.take_if(|thread| thread.is_finished()) {
            Some(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            None => Ok(()),
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // An error was reported by `check`, or came too late to matter.
            let _ = thread.join();
        }
    }
}

fn socket(charged_bytes: u64) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    // The kernel doubles it.
    let half_bytes = libc::c_int::try_from(charged_bytes / 2).unwrap_or(libc::c_int::MAX);
    // SAFETY: the value is an int, of the size given.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_SNDBUFFORCE,
            (&raw const half_bytes).cast(),
            size_of_val(&half_bytes) as libc::socklen_t,
        )
    })?;
    socket.connect((PEER, PORT))?;
    Ok(socket)
}
