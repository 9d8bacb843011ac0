//! The traffic: one thread sends, one receives.

use super::file::Bursts;
use crate::base::error::{Doing, Result};
use crate::base::system::{Epoll, now_ns};
use socket2::Socket;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// One read, and one write of a flow that always has data.
const CHUNK_BYTES: usize = 128 * 1024;
const LONGEST_SLEEP_NS: u64 = 20_000_000;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Demand {
    /// Unlimited.
    Bulk,
    /// A burst per flow and interval. The flows take turns, evenly over the interval.
    Bursts { bytes: usize, every_ns: u64 },
}

impl Demand {
    pub fn from_bursts(bursts: Option<Bursts>) -> Self {
        bursts.map_or(Self::Bulk, |bursts| Self::Bursts {
            bytes: bursts.bytes.get() as usize,
            every_ns: u64::from(bursts.every_ms.get()) * 1_000_000,
        })
    }

    /// Until every flow has had its turn. The first burst of a connection is not like those after
    /// it: what it needs is in no cache yet, and its window is still small.
    pub fn first_turns(self) -> Duration {
        match self {
            Self::Bulk => Duration::ZERO,
            Self::Bursts { every_ns, .. } => Duration::from_nanos(every_ns),
        }
    }

    /// Offered load of all flows; none if it is unlimited.
    pub fn bytes_per_s(self, flows: usize) -> Option<f64> {
        match self {
            Self::Bulk => None,
            Self::Bursts { bytes, every_ns } => {
                Some(flows as f64 * bytes as f64 * 1e9 / every_ns as f64)
            }
        }
    }
}

/// State shared between the traffic's threads and the measuring one.
#[derive(Default)]
pub struct Progress {
    stop: AtomicBool,
    received_bytes: AtomicU64,
    /// Whether the sender may send now.
    is_on: Mutex<bool>,
    has_changed: Condvar,
}

impl Progress {
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.set_turn(true);
    }

    pub fn set_turn(&self, is_on: bool) {
        *self.is_on.lock().unwrap_or_else(PoisonError::into_inner) = is_on;
        self.has_changed.notify_all();
    }

    /// Returns at once in its turn; else when that begins, and how long it has waited.
    fn await_turn_ns(&self) -> u64 {
        let is_on = self.is_on.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_on {
            return 0;
        }
        let begin_ns = now_ns();
        let waited = self.has_changed.wait_while(is_on, |is_on| !*is_on);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        now_ns() - begin_ns
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }
}

pub fn send(sockets: &[Socket], demand: Demand, progress: &Progress) -> Result<()> {
    match demand {
        Demand::Bulk => send_bulk(sockets, progress),
        Demand::Bursts { bytes, every_ns } => {
            Sender::new(sockets, bytes)?.send_bursts(every_ns, progress)
        }
    }
}

/// A chunk for each that takes one, in turns.
fn send_bulk(sockets: &[Socket], progress: &Progress) -> Result<()> {
    let mut epoll = watch(sockets, libc::EPOLLOUT)?;
    let chunk = vec![0; CHUNK_BYTES];
    while !progress.is_stopped() {
        progress.await_turn_ns();
        for number in epoll.wait(LONGEST_SLEEP_NS)? {
            write(&sockets[number], &chunk, progress)?;
        }
    }
    Ok(())
}

struct Sender<'a> {
    sockets: &'a [Socket],
    burst: Vec<u8>,
    /// Bytes of each flow that its socket has not taken yet.
    unsent_bytes: Vec<usize>,
    epoll: Epoll,
    ready: Vec<usize>,
}

impl<'a> Sender<'a> {
    fn new(sockets: &'a [Socket], burst_bytes: usize) -> Result<Self> {
        Ok(Self {
            sockets,
            burst: vec![0; burst_bytes],
            unsent_bytes: vec![0; sockets.len()],
            // Once for each time that a full socket has room again: those with nothing to send
            // do not wake anybody.
            epoll: watch(sockets, libc::EPOLLOUT | libc::EPOLLET)?,
            ready: Vec::new(),
        })
    }

    fn send_bursts(&mut self, every_ns: u64, progress: &Progress) -> Result<()> {
        let flows = self.sockets.len() as u64;
        let mut start_ns = now_ns();
        let mut next = 0;
        while !progress.is_stopped() {
            // Only the time of its turns counts.
            start_ns += progress.await_turn_ns();
            let due_ns = start_ns + due_after_ns(next, flows, every_ns);
            let left_ns = due_ns.saturating_sub(now_ns());
            if left_ns == 0 {
                let flow = (next % flows) as usize;
                self.unsent_bytes[flow] += self.burst.len();
                self.push(flow, progress)?;
                next += 1;
            }
            // Also when late, or what is half sent would wait for ever.
            self.ready.clear();
            self.ready.extend(self.epoll.wait(left_ns.min(LONGEST_SLEEP_NS))?);
            for index in 0..self.ready.len() {
                self.push(self.ready[index], progress)?;
            }
        }
        Ok(())
    }

    fn push(&mut self, flow: usize, progress: &Progress) -> Result<()> {
        while self.unsent_bytes[flow] > 0 {
            let bytes = self.unsent_bytes[flow].min(self.burst.len());
            match write(&self.sockets[flow], &self.burst[..bytes], progress)? {
                0 => break,
                written => self.unsent_bytes[flow] -= written,
            }
        }
        Ok(())
    }
}

/// Due time of a burst, where `flows` take turns within each interval.
fn due_after_ns(burst: u64, flows: u64, every_ns: u64) -> u64 {
    (u128::from(burst) * u128::from(every_ns) / u128::from(flows)) as u64
}

pub fn receive(sockets: &[Socket], progress: &Progress) -> Result<()> {
    let mut epoll = watch(sockets, libc::EPOLLIN)?;
    let mut chunk = vec![0; CHUNK_BYTES];
    while !progress.is_stopped() {
        for number in epoll.wait(LONGEST_SLEEP_NS)? {
            let bytes = match (&sockets[number]).read(&mut chunk) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
                // Both ends are stopped together; the other one has already closed its connections.
                Err(_) if progress.is_stopped() => return Ok(()),
                read => read.doing(|| format!("receive on flow {}", number + 1))?,
            };
            progress.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }
    Ok(())
}

fn watch(sockets: &[Socket], interest: i32) -> Result<Epoll> {
    let epoll = Epoll::new()?;
    for (number, socket) in sockets.iter().enumerate() {
        epoll.add(socket.as_raw_fd(), interest, number)?;
    }
    Ok(epoll)
}

/// Writes as much as the socket takes; 0 if it is full, or if both ends were asked to stop and the
/// receiver did so first.
fn write(mut socket: &Socket, bytes: &[u8], progress: &Progress) -> Result<usize> {
    match socket.write(bytes) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        Err(_) if progress.is_stopped() => Ok(0),
        written => written.doing(|| "send".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_take_turns_evenly() {
        let due_ns: Vec<u64> = (0..6).map(|burst| due_after_ns(burst, 4, 1000)).collect();
        assert_eq!(due_ns, [0, 250, 500, 750, 1000, 1250]);
        // Some hours of very many flows.
        assert_eq!(due_after_ns(200_000_000_000, 20_000, 1_000_000), 10_000_000_000_000);
    }

    /// Two ends that stop at once close in any order: a reset is news only before.
    #[test]
    fn a_receiver_that_stops_first_is_no_failure() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let sender =
            Socket::from(std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let (receiver, _) = listener.accept().unwrap();
        let progress = Progress::default();
        assert_eq!(write(&sender, b"unread", &progress).unwrap(), 6);
        receiver.peek(&mut [0]).unwrap();
        drop(receiver);
        while write(&sender, b"more", &progress).is_ok() {}
        progress.stop();
        assert_eq!(write(&sender, b"more", &progress).unwrap(), 0);
    }

    #[test]
    fn demand_is_that_of_all_flows() {
        let paper = Demand::Bursts { bytes: 131_072, every_ns: 100_000_000 };
        assert_eq!(paper.bytes_per_s(100), Some(131_072_000.0));
        assert_eq!(Demand::Bulk.bytes_per_s(100), None);
        assert_eq!(paper.first_turns(), Duration::from_millis(100));
        assert_eq!(Demand::Bulk.first_turns(), Duration::ZERO);
    }
}
