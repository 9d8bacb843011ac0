//! A host with two guests, another stack with vcc and a Linux with ECN without vcc, and a Linux
//! peer of both over the same path.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use vcc_engine::{Params, Underlay};
use vcc_port::{AttachOptions, Netns, Port};
use vcc_testing::{EndOnDrop, ip, isolated, tun};

use crate::download::{self, Download};
use crate::path::{Path, Sent};
use crate::stack::{Role, Stack, beside};

pub const GUEST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
pub const NATIVE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
pub const PEER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
/// The port of the guest's connection.
pub const PORT: u16 = 5001;
const NATIVE_PORT: u16 = 5002;

/// How long to wait for a connection. A busy machine takes half a minute to boot another.
const PATIENCE: Duration = Duration::from_secs(60);
const TRY_AGAIN: Duration = Duration::from_millis(20);
const CHUNK_BYTES: usize = 1 << 16;

#[derive(Clone, Debug)]
pub struct Trial {
    pub stack: Stack,
    pub role: Role,
    /// The options of the peer.
    pub timestamps: bool,
    pub sack: bool,
    pub mark_every: u32,
    /// The underlay, and the native sender's congestion control, which the peer runs, too.
    pub underlay: &'static str,
    pub native: String,
}

/// The transfers of the guest and of the native sender in the same time, in the trial's direction.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub guest: Sent,
    pub native: Sent,
}

impl Outcome {
    /// The guest's throughput divided by the native sender's, in segments of each one's own size.
    pub fn share(&self) -> f64 {
        self.guest.full_segs() / self.native.full_segs()
    }
}

/// A TAP device without offloads: reads and writes are whole frames with full checksums.
pub fn tap(name: &str) -> File {
    tun::create(name, libc::IFF_TAP, 0)
}

pub fn set(name: &str, value: &str) {
    let path = format!("/proc/sys/net/ipv4/{name}");
    fs::write(&path, value).unwrap_or_else(|e| panic!("{path}: {e}"));
}

pub fn without_offloads(device: &str) {
    let output = Command::new("ethtool")
        .args(["-K", device, "tso", "off", "gso", "off", "gro", "off"])
        .output()
        .expect("ethtool");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Configures a Linux end for classic ECN (RFC 3168).
pub fn set_native() {
    set("tcp_ecn", "1");
    set("tcp_congestion_control", "reno");
    // Metrics of earlier connections must not influence later ones.
    set("tcp_no_metrics_save", "1");
}

/// Runs the trial for `measured`, after `warm_up`.
pub fn run(trial: &Trial, warm_up: Duration, measured: Duration) -> Outcome {
    isolated(|| {
        let (native, peer) = (netns(), netns());
        let uplink = tap("uplink");
        let linux = netns();
        let device = match trial.stack {
            Stack::Linux { .. } => {
                ip(&format!("link add port type veth peer name guest netns {}", linux.path()));
                None
            }
            _ => Some(tap("port")),
        };
        ip(&format!("link add native type veth peer name guest netns {}", native.path()));
        for (device, address) in
            [("port", "192.0.2.2"), ("native", "203.0.113.2"), ("uplink", "198.51.100.1")]
        {
            ip(&format!("address add {address}/24 dev {device}"));
            ip(&format!("link set {device} up"));
        }
        without_offloads("native");
        set("ip_forward", "1");
        inside(&native, || {
            set_native();
            ip("address add 203.0.113.1/24 dev guest");
            ip("link set guest up");
            ip("route add default via 203.0.113.2");
            without_offloads("guest");
            if let Stack::Linux { timestamps, .. } = trial.stack {
                ip(&format!("link set guest mtu {}", trial.role.mtu));
                set("tcp_timestamps", if timestamps { "1" } else { "0" });
            }
        });
        if let Stack::Linux { timestamps, .. } = trial.stack {
            inside(&linux, || {
                set("tcp_ecn", "0");
                set("tcp_congestion_control", "reno");
                set("tcp_no_metrics_save", "1");
                set("tcp_timestamps", if timestamps { "1" } else { "0" });
                ip("address add 192.0.2.1/24 dev guest");
                ip(&format!("link set guest mtu {}", trial.role.mtu));
                ip("link set guest up");
                ip("route add default via 192.0.2.2");
            });
        }
        let far = inside(&peer, || {
            set_native();
            set("tcp_timestamps", if trial.timestamps { "1" } else { "0" });
            set("tcp_sack", if trial.sack { "1" } else { "0" });
            let far = tap("path");
            ip("address add 198.51.100.2/24 dev path");
            ip("link set path up");
            ip("route add default via 198.51.100.1");
            far
        });
        let underlay: Underlay = trial.underlay.parse().expect("an underlay");
        let mut params = Params::default();
        params.0.underlay = underlay.number();
        let _port = Port::attach("port", &AttachOptions::from_params(params)).expect("attached");
        let path = Path::new(trial.mark_every);
        // Before the guest connects, which may not try again after a refusal.
        let listen = |port| listener(PEER, port, &trial.native);
        let port = match trial.stack {
            Stack::Download(_) => Download::port(),
            _ => PORT,
        };
        let listeners = inside(&peer, || [port, NATIVE_PORT].map(listen));
        thread::scope(|scope| {
            let _end = path.end_on_drop();
            scope.spawn(|| path.carry([&uplink, &far]));
            let work = || measure(trial, &native, &peer, &listeners, &path, warm_up, measured);
            match (&trial.stack, &device) {
                (Stack::Linux { nodelay, .. }, _) => {
                    let ended = AtomicBool::new(false);
                    thread::scope(|scope| {
                        scope.spawn(|| inside(&linux, || guest(trial.role, *nodelay, &ended)));
                        let _end = EndOnDrop(&ended);
                        work()
                    })
                }
                (_, Some(device)) => beside(&trial.stack, trial.role, device, work),
                (_, None) => unreachable!("a TAP device"),
            }
        })
    })
}

pub fn netns() -> Netns {
    Netns::create().expect("a namespace")
}

pub fn inside<T: Send>(netns: &Netns, work: impl FnOnce() -> T + Send) -> T {
    netns.inside(work).expect("inside")
}

/// A Linux guest's application, until the stream is shut down.
fn guest(role: Role, nodelay: bool, ended: &AtomicBool) {
    let stream = if role.opens {
        TcpStream::connect((PEER, PORT)).expect("the guest connects")
    } else {
        accept(&TcpListener::bind((GUEST, PORT)).expect("a listener"))
    };
    stream.set_nodelay(nodelay).expect("TCP_NODELAY");
    let patience = Some(Duration::from_millis(100));
    stream.set_read_timeout(patience).expect("a timeout");
    stream.set_write_timeout(patience).expect("a timeout");
    let mut chunk = vec![b'x'; CHUNK_BYTES];
    while !ended.load(Ordering::Relaxed) {
        let _ = if role.sends { (&stream).write(&chunk) } else { (&stream).read(&mut chunk) };
    }
}

fn socket(congestion_control: &str) -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_tcp_congestion(congestion_control.as_bytes()).expect("TCP_CONGESTION");
    socket
}

pub fn listener(at: Ipv4Addr, port: u16, congestion_control: &str) -> TcpListener {
    let socket = socket(congestion_control);
    socket.bind(&SocketAddr::from((at, port)).into()).expect("an address");
    socket.listen(8).expect("a listener");
    socket.into()
}

fn connect(to: SocketAddr, congestion_control: &str) -> io::Result<TcpStream> {
    let socket = socket(congestion_control);
    socket.connect_timeout(&to.into(), PATIENCE)?;
    Ok(socket.into())
}

fn measure(
    trial: &Trial,
    native: &Netns,
    peer: &Netns,
    [for_guest, for_native]: &[TcpListener; 2],
    path: &Path,
    warm_up: Duration,
    measured: Duration,
) -> Outcome {
    let role = trial.role;
    let to_guest = if role.opens {
        accept(for_guest)
    } else {
        let to = SocketAddr::from((GUEST, PORT));
        inside(peer, || eventually("connect to the guest", || connect(to, &trial.native)))
    };
    let at_native = inside(native, || {
        connect((PEER, NATIVE_PORT).into(), &trial.native).expect("the native connects")
    });
    let to_native = accept(for_native);
    let download = match &trial.stack {
        Stack::Download(download) => Some(download),
        _ => None,
    };
    let streams = [&to_guest, &to_native, &at_native];
    thread::scope(|scope| {
        let (sender, receiver) =
            if role.sends { (&at_native, &to_native) } else { (&to_native, &at_native) };
        scope.spawn(|| send(sender));
        scope.spawn(|| receive(receiver));
        scope.spawn(|| match download {
            Some(download) => download::answer(&to_guest, download.bytes),
            None if role.sends => receive(&to_guest),
            None => send(&to_guest),
        });
        let sent = || {
            let way = |end| if role.sends { path.sent(end, PEER) } else { path.sent(PEER, end) };
            [way(GUEST), way(NATIVE)]
        };
        let before;
        match download {
            // Both connections begin now, and the native sender's measurement ends with the file.
            Some(download) => {
                before = sent();
                eventually("send the file", || {
                    let [guest, _] = sent();
                    let has_sent = guest.bytes >= download.bytes as u64;
                    if has_sent { Ok(()) } else { Err(io::Error::other(format!("{guest:?}"))) }
                });
            }
            None => {
                thread::sleep(warm_up);
                before = sent();
                thread::sleep(measured);
            }
        }
        let after = sent();
        if download.is_some() {
            let _ = to_guest.shutdown(Shutdown::Write);
            thread::sleep(TRY_AGAIN);
        }
        for stream in streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let [guest, native] = [0, 1].map(|which: usize| after[which].since(&before[which]));
        Outcome { guest, native }
    })
}

pub fn accept(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).expect("non-blocking");
    let (stream, _) = eventually("accept", || listener.accept());
    stream.set_nonblocking(false).expect("blocking");
    stream
}

pub fn eventually<T>(what: &str, mut work: impl FnMut() -> io::Result<T>) -> T {
    let begun = Instant::now();
    loop {
        match work() {
            Ok(done) => return done,
            Err(e) if begun.elapsed() > PATIENCE => panic!("{what}: {e}"),
            Err(_) => thread::sleep(TRY_AGAIN),
        }
    }
}

/// Until the stream is shut down.
fn send(mut stream: &TcpStream) {
    let chunk = vec![b'x'; CHUNK_BYTES];
    while stream.write_all(&chunk).is_ok() {}
}

fn receive(mut stream: &TcpStream) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while stream.read(&mut chunk).is_ok_and(|read| read > 0) {}
}
