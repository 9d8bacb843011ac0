//! ICMP echo requests and their round-trip times.

mod echo;

use crate::poll::{Poll, Source};
use echo::{Echo, MOST_BYTES};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd;
use vcc_traffic::report::{PingAnswer, PingReport};
use vcc_traffic::system::now_ns;
use vcc_traffic::{Doing, Result, plan};

pub struct Pings {
    socket: Socket,
    targets: Vec<Target>,
}

struct Target {
    to: Ipv4Addr,
    /// None once the reply was received.
    sent_at_ns: Vec<Option<u64>>,
    report: PingReport,
}

impl Pings {
    /// None if there are no targets.
    pub fn open(plans: &[plan::Pings]) -> Result<Option<Self>> {
        if plans.is_empty() {
            return Ok(None);
        }
        let doing = || "create a socket for pings".to_owned();
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).doing(doing)?;
        socket.set_nonblocking(true).doing(doing)?;
        let target = |plan: &plan::Pings| Target {
            to: plan.to,
            sent_at_ns: Vec::new(),
            report: PingReport { number: plan.number, ..PingReport::default() },
        };
        Ok(Some(Self { socket, targets: plans.iter().map(target).collect() }))
    }

    pub fn watch(&self, poll: &Poll) -> Result<()> {
        poll.add(self.socket.as_raw_fd(), libc::EPOLLIN, Source::Pings)
    }

    /// Sends the next request to a target.
    pub fn ask(&mut self, target: usize) -> Result<()> {
        let Target { to, sent_at_ns, report } = &mut self.targets[target];
        let request = Echo { target: target as u16, number: report.sent };
        let address = SockAddr::from(SocketAddrV4::new(*to, 0));
        sent_at_ns.push(Some(now_ns()));
        self.socket.send_to(&request.to_bytes(), &address).doing(|| format!("ping {to}"))?;
        report.sent += 1;
        Ok(())
    }

    /// Receives all messages. The socket gets every ICMP message to this guest.
    pub fn take_answers(&mut self) -> Result<()> {
        let mut packet = [0; MOST_BYTES];
        loop {
            let bytes = match (&self.socket).read(&mut packet) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).doing(|| "receive the reply to a ping".into()),
            };
            let Some((from, answer)) = Echo::of_reply(&packet[..bytes]) else { continue };
            let Some(target) = self.targets.get_mut(usize::from(answer.target)) else { continue };
            if target.to == from {
                target.note(answer.number, now_ns());
            }
        }
    }

    pub fn into_reports(self) -> Vec<PingReport> {
        self.targets.into_iter().map(|target| target.report).collect()
    }
}

impl Target {
    fn note(&mut self, number: u64, at_ns: u64) {
        let sent_at_ns = self.sent_at_ns.get_mut(number as usize).and_then(Option::take);
        self.report.answers.extend(
            sent_at_ns.map(|sent_at_ns| PingAnswer { sent_at_ns, rtt_ns: at_ns - sent_at_ns }),
        );
    }
}
