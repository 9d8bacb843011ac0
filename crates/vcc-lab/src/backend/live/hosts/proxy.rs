//! A TCP proxy in the hypervisor, in the way of a guest: what an operator can do without vcc. It
//! ends the guest's connections and makes its own, with ECN, in the guest's place.

use super::Netns;
use super::program::spawn_inside;
use crate::base::error::{Doing, Error, Result};
use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use vcc_fabric::HostId;

const PROGRAM: &str = "haproxy";
const PORT: u16 = 5001;
/// Timeout of an idle connection; longer than any run.
const TIMEOUT: &str = "24h";
const STARTS_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// A listening socket in /proc/net/tcp.
const LISTENING: &str = "0A";

/// Prefix length of the network between a guest and its proxy.
pub(super) const PREFIX_BITS: u32 = 30;

pub(super) fn proxy_address(host: HostId) -> Ipv4Addr {
    let [high, low] = (host as u16 * 4 + 1).to_be_bytes();
    Ipv4Addr::new(10, 79, high, low)
}

pub(super) fn guest_address(host: HostId) -> Ipv4Addr {
    let [high, low] = (host as u16 * 4 + 2).to_be_bytes();
    Ipv4Addr::new(10, 79, high, low)
}

/// Source address and device of the proxy's own connections, unless the kernel chooses.
pub(super) struct Outside<'a> {
    pub address: IpAddr,
    pub device: &'a str,
}

/// The address at which a guest's proxy listens.
pub(super) fn listens_at(host: HostId) -> SocketAddr {
    SocketAddr::new(proxy_address(host).into(), PORT)
}

/// Runs until it is dropped, or until the thread that started it ends.
pub struct Proxy {
    process: Child,
    address: SocketAddr,
}

impl Proxy {
    /// A proxy that listens at `address` and connects to `to`.
    pub fn on_the_way(hypervisor: &Netns, address: SocketAddr, to: SocketAddr) -> Result<Self> {
        Self::start(hypervisor, address, None, to)
    }

    pub(super) fn start(
        hypervisor: &Netns,
        address: SocketAddr,
        outside: Option<&Outside>,
        to: SocketAddr,
    ) -> Result<Self> {
        let mut command = Command::new(PROGRAM);
        command.args(["-db", "-q", "-f", "/dev/stdin"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = spawn_inside(hypervisor, &mut command, PROGRAM)?;
        let mut proxy = Self { process, address };
        let configuration = configuration(address, outside, to);
        let stdin = proxy.process.stdin.take();
        stdin
            .map_or(Ok(()), |mut stdin| stdin.write_all(configuration.as_bytes()))
            .doing(|| format!("pass its configuration to {PROGRAM}"))?;
        proxy.wait(hypervisor)?;
        Ok(proxy)
    }

    /// The address that the guest connects to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Until it listens.
    fn wait(&mut self, hypervisor: &Netns) -> Result<()> {
        let begun = Instant::now();
        while !hypervisor.inside(|| is_listening(self.address))? {
            let ended = self.process.try_wait().doing(|| format!("look after {PROGRAM}"))?;
            if ended.is_some() || begun.elapsed() > STARTS_WITHIN {
                return Err(Error::Program {
                    program: PROGRAM.into(),
                    place: "the hypervisor".into(),
                    output: format!("it does not listen at {}", self.address),
                });
            }
            thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It may have ended before, and then there is nothing to do.
        let _: [io::Result<()>; 2] = [self.process.kill(), self.process.wait().map(drop)];
    }
}

fn configuration(address: SocketAddr, outside: Option<&Outside>, to: SocketAddr) -> String {
    let source = outside.map_or(String::new(), |Outside { address, device }| {
        format!("source {address} interface {device}")
    });
    format!(
        "defaults\n mode tcp\n timeout connect {TIMEOUT}\n timeout client {TIMEOUT}\n \
         timeout server {TIMEOUT}\n\
         listen guest\n bind {address}\n server receiver {to} {source}\n"
    )
}

/// In the namespace of the calling thread.
fn is_listening(address: SocketAddr) -> Result<bool> {
    let path = "/proc/thread-self/net/tcp";
    let table = fs::read_to_string(path).doing(|| format!("read {path}"))?;
    let IpAddr::V4(ip) = address.ip() else { return Ok(false) };
    let local = format!("{:08X}:{:04X}", u32::from_ne_bytes(ip.octets()), address.port());
    Ok(table.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().take(4).collect();
        matches!(fields[..], [_, here, _, LISTENING] if here == local)
    }))
}
