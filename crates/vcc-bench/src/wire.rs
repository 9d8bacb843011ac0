//! A guest and its host: two namespaces, a veth pair between them, and a bulk transfer.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use vcc_port::harness::Yardstick;
use vcc_port::{AttachOptions, Netns, Port};
use vcc_traffic::pin_to_cpu;

use super::detour::Detour;
use super::devices::ip;

const PORT: &str = "port";
const GUEST_ADDRESS: &str = "192.0.2.1/24";
const HOST_ADDRESS: &str = "192.0.2.2/24";
const LISTEN: &str = "192.0.2.2:0";
const BUFFER_BYTES: usize = 256 << 10;
/// One CPU each, where there are two, so that the scheduler does not affect the measurement.
const SENDER_CPU: usize = 0;
const RECEIVER_CPU: usize = 1;

pub struct Wire {
    guest: Netns,
    host: Netns,
}

impl Wire {
    pub fn create() -> anyhow::Result<Self> {
        let failed = "cannot make a network namespace (it takes root)";
        let wire = Self {
            guest: Netns::create().context(failed)?,
            host: Netns::create().context(failed)?,
        };
        let guest = wire.guest.path();
        wire.host.inside(|| {
            ip(&format!("link add {PORT} type veth peer name guest netns {guest}"))?;
            ip(&format!("address add {HOST_ADDRESS} dev {PORT}"))?;
            ip(&format!("link set {PORT} up"))
        })??;
        wire.guest.inside(|| {
            // The machine's default congestion control may pace or probe.
            let path = "/proc/sys/net/ipv4/tcp_congestion_control";
            fs::write(path, "reno").with_context(|| format!("cannot write {path}"))?;
            ip(&format!("address add {GUEST_ADDRESS} dev guest"))?;
            ip("link set guest up")
        })??;
        Ok(wire)
    }

    pub fn attach(&self, options: &AttachOptions) -> anyhow::Result<Port> {
        Ok(self.host.inside(|| Port::attach(PORT, options))??)
    }

    pub fn start_detour(&self) -> anyhow::Result<Detour> {
        self.host.inside(|| Detour::start(PORT))?
    }

    pub fn attach_yardstick(&self) -> anyhow::Result<Yardstick> {
        Ok(self.host.inside(|| Yardstick::attach(PORT))??)
    }

    /// Bits a second from the guest to the host over one connection, after `warm_up`.
    pub fn transfer(&self, warm_up: Duration, measured: Duration) -> anyhow::Result<f64> {
        let listener = self.host.inside(|| TcpListener::bind(LISTEN))??;
        let address = listener.local_addr()?;
        let mut sender = self.guest.inside(|| TcpStream::connect(address))??;
        let (mut receiver, _) = listener.accept()?;
        thread::scope(|scope| {
            scope.spawn(move || {
                let _ = pin_to_cpu(SENDER_CPU);
                let buffer = vec![0; BUFFER_BYTES];
                // It ends when the receiver goes.
                while sender.write_all(&buffer).is_ok() {}
            });
            let receiver = scope.spawn(move || {
                let _ = pin_to_cpu(RECEIVER_CPU);
                receive(&mut receiver, warm_up, measured)
            });
            receiver.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }
}

fn receive(receiver: &mut TcpStream, warm_up: Duration, measured: Duration) -> anyhow::Result<f64> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let begin = Instant::now();
    while begin.elapsed() < warm_up {
        read_some(receiver, &mut buffer)?;
    }
    let begin = Instant::now();
    let mut bytes = 0;
    while begin.elapsed() < measured {
        bytes += read_some(receiver, &mut buffer)?;
    }
    Ok(bytes as f64 * 8.0 / begin.elapsed().as_secs_f64())
}

fn read_some(receiver: &mut TcpStream, buffer: &mut [u8]) -> anyhow::Result<usize> {
    match receiver.read(buffer).context("cannot receive")? {
        0 => bail!("the sender stopped early"),
        bytes => Ok(bytes),
    }
}
