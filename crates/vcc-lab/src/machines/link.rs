//! A link with a delay between two namespaces: a TAP in each, and a thread between them.
//!
//! The TAPs have offloads, so that super-segments pass as they are. Their queueing disciplines limit
//! the rate.

use super::turns::{self, Part};
use crate::backend::live::hosts::Tap;
use crate::base::error::{Doing, Result};
use crate::base::system::{Epoll, now_ns};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

const LONGEST_SLEEP_NS: u64 = 20_000_000;
/// Frames are read in batches, so that those that are due need not wait long.
const READS_AT_ONCE: usize = 16;

/// Frames pass until this is dropped.
pub struct Link {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Link {
    /// Each frame takes `delay_ns` from one TAP to the other, both ways.
    pub fn between(taps: [Tap; 2], delay_ns: u64) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let thread = thread::Builder::new()
            .name("link".into())
            .spawn(move || Line::new(taps, delay_ns)?.run(&seen))
            .doing(|| "start the thread of the link to the peer".into())?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// # Errors
    /// The thread has ended, and frames no longer pass.
    pub fn check(&mut self) -> Result<()> {
        match self.thread.take_if(|thread| thread.is_finished()) {
            Some(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            None => Ok(()),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // An error was reported by `check`, or came too late to matter.
            let _ = thread.join();
        }
    }
}

/// The thread's.
struct Line {
    taps: [Tap; 2],
    delay_ns: u64,
    epoll: Epoll,
    /// By the TAP that they came from: when each is due, in order.
    under_way: [VecDeque<(u64, Vec<u8>)>; 2],
    unused: Vec<Vec<u8>>,
}

impl Line {
    fn new(taps: [Tap; 2], delay_ns: u64) -> Result<Self> {
        let epoll = Epoll::new()?;
        for (side, tap) in taps.iter().enumerate() {
            epoll.add(tap.fd(), libc::EPOLLIN, side)?;
        }
        Ok(Self { taps, delay_ns, epoll, under_way: Default::default(), unused: Vec::new() })
    }

    fn run(mut self, stop: &AtomicBool) -> Result<()> {
        turns::place(0, Part::Link).doing(|| "get real-time priority".into())?;
        let mut ready = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            self.deliver();
            let due_ns =
                self.under_way.iter().filter_map(VecDeque::front).map(|(due_ns, _)| due_ns);
            let sleep_ns =
                due_ns.min().map_or(LONGEST_SLEEP_NS, |due| due.saturating_sub(now_ns()));
            ready.clear();
            ready.extend(self.epoll.wait(sleep_ns.min(LONGEST_SLEEP_NS))?);
            for &side in &ready {
                self.read(side)?;
            }
        }
        Ok(())
    }

    fn deliver(&mut self) {
        let now_ns = now_ns();
        for (side, frames) in self.under_way.iter_mut().enumerate() {
            while frames.front().is_some_and(|(due_ns, _)| *due_ns <= now_ns) {
                let Some((_, frame)) = frames.pop_front() else { break };
                // A frame that a kernel does not take is lost, as on any link.
                self.taps[1 - side].write(&frame);
                self.unused.push(frame);
            }
        }
    }

    fn read(&mut self, side: usize) -> Result<()> {
        for _ in 0..READS_AT_ONCE {
            let mut frame = self.unused.pop().unwrap_or_default();
            let is_there = self.taps[side].read(&mut frame);
            if !is_there.doing(|| "read a frame from the link to the peer".into())? {
                self.unused.push(frame);
                break;
            }
            self.under_way[side].push_back((now_ns() + self.delay_ns, frame));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::live::hosts::{Netns, ip_batch};
    use std::net::{SocketAddr, UdpSocket};
    use std::time::{Duration, Instant};
    use vcc_testing::skip;

    #[test]
    fn frames_take_the_delay_each_way() {
        const DELAY: Duration = Duration::from_millis(5);
        if let Err(error) = crate::base::system::require_root() {
            return skip(&error.to_string());
        }
        let ends = [1, 2].map(|number| {
            let namespace = Netns::create().unwrap();
            let make = || {
                let tap = Tap::with_offloads("tap0")?;
                let lines = format!("addr add 10.79.0.{number}/24 dev tap0\nlink set tap0 up\n");
                ip_batch("here", &lines)?;
                let socket = UdpSocket::bind(format!("10.79.0.{number}:9000")).unwrap();
                socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                Ok((tap, socket))
            };
            let (tap, socket) = namespace.inside(make).unwrap();
            (namespace, tap, socket)
        });
        let [(_one, one_tap, one), (_other, other_tap, other)] = ends;
        let mut link = Link::between([one_tap, other_tap], DELAY.as_nanos() as u64).unwrap();
        let mut buffer = [0; 8];
        let to = other.local_addr().unwrap();
        let mut send = |from: &UdpSocket, to: SocketAddr, by: &UdpSocket| {
            from.send_to(b"data", to).unwrap();
            by.recv_from(&mut buffer).unwrap().1
        };
        // After ARP's round trip.
        let back = send(&one, to, &other);
        let begun = Instant::now();
        send(&one, to, &other);
        send(&other, back, &one);
        assert!(begun.elapsed() >= 2 * DELAY);
        link.check().unwrap();
    }
}
