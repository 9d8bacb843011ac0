//! SYNs of one guest, at a rate. Most get no answer, some a SYN-ACK, and some a RST, as in a scan.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use vcc_frames::wire::*;
use vcc_frames::{Packet, options};
use vcc_port::harness::{FrameSocket, Way};
use vcc_port::{Error, Netns, Result};

/// The segments that are due are sent about so often.
const TICK: Duration = Duration::from_millis(1);
/// Of so many SYNs, one is answered and one refused.
const OF: u64 = 4;
const TO: ([u8; 4], u16) = ([203, 0, 113, 1], 80);

/// The two ends of a port: a guest's device, and the host's.
pub struct SynFlood {
    guest: FrameSocket,
    host: FrameSocket,
    sent: u64,
}

impl SynFlood {
    /// `port` is in the calling thread's network namespace, `device` in the guest's.
    pub fn between(guest: &Netns, device: &str, port: &str) -> Result<Self> {
        let doing = "enter the guest's namespace";
        let from = guest.inside(|| FrameSocket::at(device, Way::Direct));
        Ok(Self {
            guest: from.map_err(|e| system(doing, &e))??,
            // Past the program that translates to the guest.
            host: FrameSocket::at(port, Way::PastPrograms)?,
            sent: 0,
        })
    }

    /// Sends until it is over, each SYN of another connection. Returns how many in a second.
    pub fn run(&mut self, syns_a_second: u32, is_over: &AtomicBool) -> Result<f64> {
        let (begin, before) = (Instant::now(), self.sent);
        while !is_over.load(Ordering::Relaxed) {
            let due = (begin.elapsed().as_secs_f64() * f64::from(syns_a_second)) as u64;
            while self.sent - before < due && !is_over.load(Ordering::Relaxed) {
                self.syn().map_err(|e| system("send a SYN of a flood", &e))?;
            }
            thread::sleep(TICK);
        }
        Ok((self.sent - before) as f64 / begin.elapsed().as_secs_f64())
    }

    fn syn(&mut self) -> std::io::Result<()> {
        let number = self.sent;
        self.sent += 1;
        let [.., a, b, c] = (number as u32).to_be_bytes();
        let (from, to): (SocketAddr, SocketAddr) = (([10, a, b, c], 1024).into(), TO.into());
        let offers = [options::mss(1460), options::wscale(7), options::sack_permitted()];
        let syn = Packet { options: options::join(&offers), ..Packet::syn(from, to) };
        self.guest.send(&syn.frame())?;
        let answer = match number % OF {
            0 => Packet { flags: SYN | ACK, ack: 1, ..Packet::new(to, from) },
            1 => Packet { flags: RST | ACK, ack: 1, ..Packet::new(to, from) },
            _ => return Ok(()),
        };
        self.host.send(&answer.frame())
    }
}

fn system(doing: &str, error: &std::io::Error) -> Error {
    Error::System { doing: doing.into(), why: error.to_string() }
}
