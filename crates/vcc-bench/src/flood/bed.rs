//! Three guests, each with a device of the host, which may be a port.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::Context;
use vcc_port::{AttachOptions, Netns, Port};

use super::super::devices::{Devices, ip};
use crate::measure::SynFlood;

/// Far longer than a handshake, its retransmissions included.
const PATIENCE: Duration = Duration::from_secs(30);

/// The guest that floods.
pub const FLOODER: usize = 0;
const GUESTS: usize = 3;

pub struct Bed {
    pub guests: Vec<Guest>,
    pub flood: SynFlood,
    /// Those of the guests, while vcc is attached.
    pub ports: Vec<Port>,
}

pub struct Guest {
    netns: Netns,
    listener: TcpListener,
    address: SocketAddr,
}

impl Bed {
    pub fn create() -> anyhow::Result<Self> {
        let mut devices = Devices::begin()?;
        (0..GUESTS).try_for_each(|number| devices.create(&format!("port{number}")))?;
        devices.finish()?;
        let guests = (0..GUESTS as u8).map(Guest::create).collect::<anyhow::Result<Vec<_>>>()?;
        let flood = SynFlood::between(&guests[FLOODER].netns, "of-port0", "port0")?;
        Ok(Self { guests, flood, ports: Vec::new() })
    }

    pub fn attach(&mut self) -> anyhow::Result<()> {
        let devices: Vec<_> = (0..GUESTS).map(|number| format!("port{number}")).collect();
        let devices: Vec<_> = devices.iter().map(String::as_str).collect();
        self.ports = Port::attach_pinned(&devices, &AttachOptions::default())?;
        Ok(())
    }

    pub fn detach(&mut self) -> anyhow::Result<()> {
        self.ports.drain(..).try_for_each(|port| port.detach().map(drop))?;
        Ok(())
    }
}

impl Guest {
    fn create(number: u8) -> anyhow::Result<Self> {
        let netns = Netns::create().context("cannot make a network namespace (it takes root)")?;
        let host = Ipv4Addr::new(198, 18, number, 1);
        ip(&format!("link set of-port{number} netns {}", netns.path()))?;
        ip(&format!("address add {host}/24 dev port{number}"))?;
        ip(&format!("link set port{number} up"))?;
        netns.inside(|| {
            // The machine's default congestion control may pace or probe.
            let path = "/proc/sys/net/ipv4/tcp_congestion_control";
            fs::write(path, "reno").with_context(|| format!("cannot write {path}"))?;
            ip(&format!("address add 198.18.{number}.2/24 dev of-port{number}"))?;
            ip(&format!("link set of-port{number} up"))
        })??;
        let listener = TcpListener::bind((host, 0))?;
        let address = listener.local_addr()?;
        Ok(Self { netns, listener, address })
    }

    /// The guest's end, and the host's.
    pub fn connect(&self) -> anyhow::Result<(TcpStream, TcpStream)> {
        let opened = self.netns.inside(|| self.open())?;
        Ok((opened.context("a guest cannot connect")?, self.listener.accept()?.0))
    }

    /// Runs `work` inside, which may [open](Self::open).
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        Ok(self.netns.inside(work)?)
    }

    /// On a thread that is inside.
    pub fn open(&self) -> std::io::Result<TcpStream> {
        TcpStream::connect_timeout(&self.address, PATIENCE)
    }

    pub fn accept(&self) -> std::io::Result<TcpStream> {
        Ok(self.listener.accept()?.0)
    }
}
