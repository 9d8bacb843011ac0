//! A host: a network namespace whose only device is a TUN end in this process.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use vcc_testing::{ip, tun};

use super::segment::Segment;

const PACKET_ROOM_BYTES: usize = 2048;
/// Large enough never to limit a window.
const BUFFERS_BYTES: &str = "4096 8388608 8388608";
/// Far above any round trip here, even on a busy machine.
const RTO_MIN: &str = "1s";

pub struct Host {
    tun: File,
    address: Ipv4Addr,
}

impl Host {
    /// Sets the calling thread's namespace up as a host.
    pub fn create(address: Ipv4Addr) -> Self {
        // Without offloads, so that the kernel delivers packets as on a wire.
        let tun = tun::create("wire", libc::IFF_TUN, libc::O_NONBLOCK);
        // One segment per packet, and no loss but the wire's.
        ip("link set wire gso_max_segs 1 txqueuelen 100000 up");
        ip(&format!("address add {address}/32 dev wire"));
        ip(&format!("route add 192.0.2.0/24 dev wire rto_min {RTO_MIN}"));
        for (name, value) in [
            ("tcp_rmem", BUFFERS_BYTES),
            ("tcp_wmem", BUFFERS_BYTES),
            // No tail loss probes, which depend on time.
            ("tcp_early_retrans", "0"),
        ] {
            let path = format!("/proc/sys/net/ipv4/{name}");
            fs::write(&path, value).unwrap_or_else(|e| panic!("{path}: {e}"));
        }
        Self { tun, address }
    }

    /// Must be called in the host's namespace.
    pub fn listen(&self, congestion_control: &str) -> TcpListener {
        let listener = TcpListener::bind((self.address, 0)).expect("a listener");
        let socket = Socket::from(listener);
        set_congestion_control(&socket, congestion_control);
        socket.set_nonblocking(true).expect("non-blocking");
        TcpListener::from(socket)
    }

    /// The next segment that the host has sent, if any.
    pub fn sent(&self) -> Option<Segment> {
        let mut packet = [0; PACKET_ROOM_BYTES];
        loop {
            match (&self.tun).read(&mut packet) {
                // Other packets (IPv6 neighbour discovery) are dropped.
                Ok(bytes) => match Segment::parse(&packet[..bytes]) {
                    Some(segment) => return Some(segment),
                    None => continue,
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) => panic!("the wire's end: {error}"),
            }
        }
    }

    /// The host's TCP has processed the segment when this returns.
    pub fn receive(&self, segment: &Segment) {
        let bytes = (&self.tun).write(segment.packet()).expect("the wire's end");
        assert_eq!(bytes, segment.packet().len());
    }
}

/// Sends a SYN from the calling thread's namespace and returns without waiting for an answer.
pub fn start_to_connect(to: SocketAddrV4, congestion_control: &str) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).expect("a socket");
    set_congestion_control(&socket, congestion_control);
    socket.set_nonblocking(true).expect("non-blocking");
    let error = socket.connect(&to.into()).expect_err("a connection without an answer");
    assert_eq!(error.raw_os_error(), Some(libc::EINPROGRESS), "{error}");
    TcpStream::from(socket)
}

/// Waits until a host has sent something, or until the timeout.
pub fn wait(hosts: [&Host; 2], at_most: Duration) {
    let poll = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut fds = hosts.map(|host| poll(host.tun.as_raw_fd()));
    let time = libc::timespec {
        tv_sec: at_most.as_secs() as libc::time_t,
        tv_nsec: at_most.subsec_nanos() as libc::c_long,
    };
    // SAFETY: both pointers are to values that outlive the call; null stands for no signal mask.
    unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, &time, std::ptr::null()) };
}

pub fn congestion_control(stream: &TcpStream) -> String {
    let name = Socket::from(stream.try_clone().expect("a descriptor")).tcp_congestion();
    let name = name.expect("TCP_CONGESTION").into_iter().take_while(|&byte| byte != 0);
    String::from_utf8(name.collect()).expect("a name")
}

pub fn set_congestion_control(socket: &Socket, name: &str) {
    socket.set_tcp_congestion(name.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e}"));
}
