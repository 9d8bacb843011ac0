//! Guests that talk over ports while something happens to these.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context;
use vcc_port::{FlowId, Netns, Port};
use vcc_traffic::TcpInfo;

use super::super::devices::ip;

/// The ports that carry connections, from the first on.
const PORTS: u8 = 2;
const CONNECTIONS_A_PORT: usize = 10;
pub const CONNECTIONS: usize = PORTS as usize * CONNECTIONS_A_PORT;
const MESSAGE_BYTES: usize = 20_000;
/// Between two round trips of a connection, so that they leave CPUs to what happens.
const PAUSE: Duration = Duration::from_millis(1);
/// Far longer than any round trip, retransmissions included.
const PATIENCE: Duration = Duration::from_secs(30);

/// One thread asks over all connections in turn; one for each answers, as its peer.
pub struct Talk {
    is_over: Arc<AtomicBool>,
    asking: JoinHandle<io::Result<Talked>>,
    answering: Vec<JoinHandle<io::Result<u32>>>,
    /// Its devices go with it.
    _guest: Netns,
}

#[derive(Default)]
pub struct Talked {
    pub round_trips: u32,
    pub longest: Duration,
    /// Segments, of both ends.
    pub retransmitted: u32,
}

impl Talk {
    pub fn begin() -> anyhow::Result<Self> {
        let guest = Netns::create().context("cannot make a network namespace (it takes root)")?;
        let mut asking = Vec::new();
        let mut answering = Vec::new();
        for port in 0..PORTS {
            let host = Ipv4Addr::new(198, 18, port, 1);
            ip(&format!("link set of-port{port} netns {}", guest.path()))?;
            ip(&format!("address add {host}/24 dev port{port}"))?;
            ip(&format!("link set port{port} up"))?;
            guest.inside(|| {
                ip(&format!("address add 198.18.{port}.2/24 dev of-port{port}"))?;
                ip(&format!("link set of-port{port} up"))
            })??;
            let listener = TcpListener::bind((host, 0))?;
            let address = listener.local_addr()?;
            for _ in 0..CONNECTIONS_A_PORT {
                let socket = guest.inside(|| TcpStream::connect_timeout(&address, PATIENCE))??;
                socket.set_nodelay(true)?;
                socket.set_read_timeout(Some(PATIENCE))?;
                asking.push(socket);
                let (socket, _) = listener.accept()?;
                socket.set_nodelay(true)?;
                answering.push(thread::spawn(move || answer(socket)));
            }
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_over);
        let asking = thread::spawn(move || ask(asking, &asked));
        Ok(Self { is_over, asking, answering, _guest: guest })
    }

    /// The connections that ports know.
    pub fn known(&self) -> anyhow::Result<Vec<FlowId>> {
        let ports = Port::list()?;
        let flows = Port::flows_of_all(&ports.iter().collect::<Vec<_>>())?;
        Ok(flows.into_iter().flatten().map(|flow| flow.id()).collect())
    }

    pub fn end(self) -> anyhow::Result<Talked> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut talked = joined(self.asking).context("a guest cannot talk")?;
        for answering in self.answering {
            talked.retransmitted += joined(answering).context("a peer cannot answer")?;
        }
        Ok(talked)
    }
}

fn joined<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

fn ask(mut sockets: Vec<TcpStream>, is_over: &AtomicBool) -> io::Result<Talked> {
    let asked: Vec<u8> = (0..MESSAGE_BYTES).map(|at| (at % 251) as u8).collect();
    let mut answer = vec![0; MESSAGE_BYTES];
    let mut talked = Talked::default();
    while !is_over.load(Ordering::Relaxed) {
        for socket in &mut sockets {
            let began = Instant::now();
            socket.write_all(&asked)?;
            socket.read_exact(&mut answer)?;
            talked.longest = talked.longest.max(began.elapsed());
            talked.round_trips += 1;
            if answer != asked {
                return Err(io::Error::other("an answer is not what was asked"));
            }
            thread::sleep(PAUSE);
        }
    }
    for socket in &sockets {
        talked.retransmitted += TcpInfo::read(socket)?.total_retrans_segs;
    }
    Ok(talked)
}

/// Returns what it receives, until the other end closes. Returns the segments retransmitted.
fn answer(mut socket: TcpStream) -> io::Result<u32> {
    let mut buffer = vec![0; MESSAGE_BYTES];
    loop {
        match socket.read(&mut buffer)? {
            0 => return Ok(TcpInfo::read(&socket)?.total_retrans_segs),
            bytes => socket.write_all(&buffer[..bytes])?,
        }
    }
}
