//! Transfers at a rate, or as fast as possible.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const BUFFER_BYTES: usize = 256 << 10;
const CHUNK_BYTES: usize = 32_000;
const EVERY: Duration = Duration::from_millis(1);
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    Paced,
    Greedy,
    Over,
}

/// What all transfers do, and the bytes that have arrived.
pub struct Load {
    phase: AtomicU8,
    received: AtomicU64,
}

impl Load {
    pub fn new() -> Self {
        Self { phase: AtomicU8::new(Phase::Paced as u8), received: AtomicU64::new(0) }
    }

    pub fn set(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    fn is(&self, phase: Phase) -> bool {
        self.phase.load(Ordering::Relaxed) == phase as u8
    }

    /// Bits a second that arrive meanwhile.
    pub fn goodput_bps(&self, measured: Duration) -> f64 {
        let (begin, before) = (Instant::now(), self.received.load(Ordering::Relaxed));
        thread::sleep(measured);
        let bytes = self.received.load(Ordering::Relaxed) - before;
        bytes as f64 * 8.0 / begin.elapsed().as_secs_f64()
    }

    /// Sends until it is over.
    pub fn send(&self, mut socket: TcpStream) -> io::Result<()> {
        let buffer = vec![0; BUFFER_BYTES];
        let mut due = Instant::now();
        while self.is(Phase::Paced) {
            socket.write_all(&buffer[..CHUNK_BYTES])?;
            due += EVERY;
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        while self.is(Phase::Greedy) {
            socket.write_all(&buffer)?;
        }
        socket.shutdown(Shutdown::Write)
    }

    /// Receives until the sender closes.
    pub fn receive(&self, mut socket: TcpStream) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            match socket.read(&mut buffer)? {
                0 => return Ok(()),
                bytes => self.received.fetch_add(bytes as u64, Ordering::Relaxed),
            };
        }
    }
}
