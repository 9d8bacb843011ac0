//! One guest alone, which fetches a file through a bottleneck: without vcc, behind a port in the kernel, or behind
//! the driver domain, which is the card of a virtual machine, and a detour for all others.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use vcc_domain::{BufferSpec, Port as DomainPort};
use vcc_engine::{Params, Underlay};
use vcc_port::{AttachOptions, Detour, Netns, Port};
use vcc_testing::{accept_detours, ip, isolated};
use vcc_vhost::{RelayServer, Server, Tap};

use crate::bed::{
    GUEST, PEER, accept, eventually, inside, listener, netns, set, set_native, tap,
    without_offloads,
};
use crate::download::{self, Download, Link};
use crate::path::{Bottleneck, Path, Sent};
use crate::stack::start;

const UNDERLAY: &str = "dctcp";
const PEERS_CONTROL: &str = "reno";
const MAX_FLOWS: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    Nothing,
    Kernel,
    Domain,
}

#[derive(Clone, Debug)]
pub enum Guest {
    Download(Download),
    /// This machine's, in a namespace of its own.
    Linux {
        has_ecn: bool,
        bytes: usize,
    },
    /// The same without ECN, and its connections are those of `slirp4netns` in that namespace.
    Slirp {
        bytes: usize,
    },
}

impl Guest {
    fn bytes(&self) -> usize {
        match self {
            Self::Download(download) => download.bytes,
            Self::Linux { bytes, .. } | Self::Slirp { bytes } => *bytes,
        }
    }
}

/// The transfer on the path; the guest has the file, whole and unchanged.
pub fn fetch(guest: &Guest, behind: Behind, bottleneck: Bottleneck) -> Sent {
    isolated(|| {
        let peer = netns();
        let uplink = tap("uplink");
        let bed = Bed::new(guest, behind);
        for (device, address) in [("port", "192.0.2.2"), ("uplink", "198.51.100.1")] {
            ip(&format!("address add {address}/24 dev {device}"));
            ip(&format!("link set {device} up"));
        }
        set("ip_forward", "1");
        accept_detours();
        let far = inside(&peer, || {
            set_native();
            let far = tap("path");
            ip("address add 198.51.100.2/24 dev path");
            ip("link set path up");
            ip("route add default via 198.51.100.1");
            far
        });
        let path = Path::at(bottleneck);
        let listener = inside(&peer, || listener(PEER, Download::port(), PEERS_CONTROL));
        let _vcc = Vcc::in_front_of("port", behind, guest);
        thread::scope(|scope| {
            let _end = path.end_on_drop();
            scope.spawn(|| path.carry([&uplink, &far]));
            bed.run(guest, behind, || serve(&listener, guest, &path));
        });
        path.sent(PEER, GUEST)
    })
}

/// Answers the guest's request, until it has all.
fn serve(listener: &TcpListener, guest: &Guest, path: &Path) {
    let stream = accept(listener);
    download::answer(&stream, guest.bytes());
    let _ = stream.shutdown(Shutdown::Write);
    eventually("send the file", || {
        let sent = path.sent(PEER, GUEST);
        let has_sent = sent.bytes >= guest.bytes() as u64;
        if has_sent { Ok(()) } else { Err(io::Error::other(format!("{sent:?}"))) }
    });
    if let Guest::Download(download) = guest {
        download.expect_whole();
    }
}

/// The guest's device.
enum Bed {
    /// A tap that the guest's program opens.
    Tap(File),
    /// A tap behind the card.
    Card,
    Veth(Netns),
}

impl Bed {
    fn new(guest: &Guest, behind: Behind) -> Self {
        match guest {
            Guest::Linux { .. } | Guest::Slirp { .. } => {
                let has_ecn = matches!(guest, Guest::Linux { has_ecn: true, .. });
                let linux = netns();
                ip(&format!("link add port type veth peer name guest netns {}", linux.path()));
                without_offloads("port");
                inside(&linux, || {
                    set_native();
                    set("tcp_ecn", if has_ecn { "1" } else { "0" });
                    ip("address add 192.0.2.1/24 dev guest");
                    ip("link set guest up");
                    ip("route add default via 192.0.2.2");
                    without_offloads("guest");
                });
                Self::Veth(linux)
            }
            Guest::Download(download) if download.is_machine && behind == Behind::Domain => {
                ip("tuntap add dev port mode tap");
                Self::Card
            }
            Guest::Download(_) => Self::Tap(tap("port")),
        }
    }

    /// Runs the guest during `work`, until it has the file.
    fn run(&self, guest: &Guest, behind: Behind, work: impl FnOnce()) {
        match (self, guest) {
            (Self::Veth(linux), Guest::Linux { bytes, .. }) => beside(linux, *bytes, work),
            (Self::Veth(outer), Guest::Slirp { bytes }) => {
                let inner = netns();
                let _slirp = inside(outer, || start(slirp(&inner), None));
                beside(&inner, *bytes, work);
            }
            (Self::Tap(device), Guest::Download(download)) => {
                let _guest = start(download.command(&Link::Tap), Some(device));
                work();
            }
            (Self::Card, Guest::Download(download)) => {
                let _guest = start(download.command(&Link::Card(download.socket())), None);
                work();
            }
            _ => unreachable!("{guest:?} behind {behind:?}"),
        }
    }
}

/// Runs Linux's application during `work`, until it has the file.
fn beside(linux: &Netns, bytes: usize, work: impl FnOnce()) {
    thread::scope(|scope| {
        let linux = scope.spawn(|| inside(linux, || get(bytes)));
        work();
        linux.join().expect("the guest");
    });
}

fn get(bytes: usize) {
    let connect = || TcpStream::connect((PEER, Download::port()));
    let mut stream = eventually("connect", connect);
    stream.write_all(b"GET /body HTTP/1.0\r\n\r\n").expect("a peer that listens");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    assert!(answer.ends_with(&download::body(bytes)), "another file");
}

/// Leads out of a namespace.
fn slirp(of: &Netns) -> Command {
    let mut command = Command::new("slirp4netns");
    command.args(["--configure", "--mtu=1500", "--netns-type=path", &of.path(), "tap0"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// What is in front of the guest.
enum Vcc {
    Nothing,
    #[expect(dead_code, reason = "its drop detaches it")]
    Port(Port),
    /// It ends when the socket is closed.
    Domain(Option<(UnixStream, thread::JoinHandle<()>)>),
}

impl Vcc {
    fn in_front_of(device: &str, behind: Behind, guest: &Guest) -> Self {
        let mut params = Params::default();
        params.0.underlay = UNDERLAY.parse::<Underlay>().expect("an underlay").number();
        match behind {
            Behind::Nothing => Self::Nothing,
            Behind::Kernel => {
                let options = AttachOptions::from_params(params);
                Self::Port(Port::attach(device, &options).expect("attached"))
            }
            Behind::Domain => {
                let port = DomainPort::with_buffer(params, MAX_FLOWS, BufferSpec::default());
                let socket = match guest {
                    Guest::Download(it) if it.is_machine => Some(it.socket()),
                    _ => None,
                };
                Self::serve(device, port, socket)
            }
        }
    }

    /// With a socket, as a virtual machine's card.
    fn serve(device: &str, port: DomainPort, socket: Option<PathBuf>) -> Self {
        let (stop, stopped) = UnixStream::pair().expect("a pair of sockets");
        let on_event = Box::new(|event| eprintln!("the domain: {event}"));
        let server = if let Some(socket) = socket {
            let tap = Box::new(Tap::open(device).expect("a tap"));
            let mut server = Server::new(&socket, port, tap, on_event).expect("a server");
            thread::spawn(move || server.run(&stopped).expect("served"))
        } else {
            let [guest, fabric] = [Detour::GUEST_TAP, Detour::FABRIC_TAP]
                .map(|pattern| Tap::temporary(pattern).expect("a tap"));
            let detour = Detour::prepare(device, guest.name(), fabric.name());
            let mut detour = detour.expect("a detour");
            guest.set_up().expect("a tap");
            fabric.set_up().expect("a tap");
            let (guest, fabric) = (Box::new(guest), Box::new(fabric));
            let server = RelayServer::new(device, port, guest, fabric, on_event);
            let mut server = server.expect("a server");
            detour.open().expect("a detour");
            thread::spawn(move || {
                server.run(&stopped, detour.gone()).expect("served");
                detour.close();
                server.end();
            })
        };
        Self::Domain(Some((stop, server)))
    }
}

impl Drop for Vcc {
    fn drop(&mut self) {
        if let Self::Domain(serving) = self
            && let Some((stop, server)) = serving.take()
        {
            drop(stop);
            let _ = server.join();
        }
    }
}
