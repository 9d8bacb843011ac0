//! Live TCP through a port, with every way in which a kernel may leave checksums and segments for
//! later. A wrong checksum, which veth hides as long as it is offloaded, would stall a transfer.
//! VLAN tags, in the frame and taken out of it, are the golden packets' matter: not every kernel has
//! VLAN devices.

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use vcc_engine::sys;
use vcc_port::testing::{can_attach, ip, isolated};
use vcc_port::{AttachOptions, Netns, Port, counters};

/// From all that the device can do to nothing: what ethtool -K is told.
const OFFLOADS: [&str; 4] = [
    "tx on tso on gso on gro on",
    "tx on tso off gso on gro on",
    "tx on tso off gso off gro off",
    "tx off tso off gso off gro off",
];
const PAYLOAD_WORDS: u32 = 1 << 17;
/// A transfer that takes so long has stalled.
const STALLED: Duration = Duration::from_secs(30);

/// A guest in a namespace of its own behind `port`; the calling thread's namespace is the peer.
struct Wire {
    guest: Netns,
}

impl Wire {
    fn create() -> Self {
        let guest = Netns::create().expect("a namespace");
        ip(&format!("link add port type veth peer name guest netns {}", guest.path()));
        configure("port", 2);
        guest.inside(|| configure("guest", 1)).expect("inside");
        // The guest neither asks for ECN nor accepts it; the peer does both.
        guest.inside(|| set_ecn("0")).expect("inside");
        set_ecn("1");
        Self { guest }
    }

    fn set_offloads(&self, guest: &str, port: &str) {
        self.guest.inside(|| ethtool("guest", guest)).expect("inside");
        ethtool("port", port);
    }

    /// The guest's end and the peer's, opened by one of them.
    fn connect(&self, v6: bool, guest_opens: bool) -> (TcpStream, TcpStream) {
        let (guest, peer) = (address(v6, 1), address(v6, 2));
        let listen = |address: IpAddr| TcpListener::bind((address, 0)).expect("a listener");
        let dial = |to: SocketAddr| TcpStream::connect_timeout(&to, STALLED).expect("connected");
        if guest_opens {
            let listener = listen(peer);
            let to = listener.local_addr().expect("an address");
            let here = self.guest.inside(|| dial(to)).expect("inside");
            (here, listener.accept().expect("accepted").0)
        } else {
            let listener = self.guest.inside(|| listen(guest)).expect("inside");
            let there = dial(listener.local_addr().expect("an address"));
            (listener.accept().expect("accepted").0, there)
        }
    }
}

fn address(v6: bool, host: u8) -> IpAddr {
    if v6 { format!("fd00::{host}").parse().expect("an address") } else { [192, 0, 2, host].into() }
}

fn configure(device: &str, host: u8) {
    ip(&format!("address add {}/24 dev {device}", address(false, host)));
    ip(&format!("address add {}/64 dev {device} nodad", address(true, host)));
    ip(&format!("link set {device} up"));
}

fn set_ecn(value: &str) {
    fs::write("/proc/sys/net/ipv4/tcp_ecn", value).expect("net.ipv4.tcp_ecn");
}

fn ethtool(device: &str, offloads: &str) {
    let output = Command::new("ethtool")
        .args(["-K", device])
        .args(offloads.split(' '))
        .output()
        .expect("ethtool");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ethtool -K {device} {offloads}: {told}");
}

/// The payload goes both ways at once and arrives as it was sent.
fn exchange(one: TcpStream, other: TcpStream) {
    let payload: Vec<u8> =
        (0..PAYLOAD_WORDS).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let send = |mut stream: &TcpStream| stream.write_all(&payload).expect("sent");
    let receive = |mut stream: &TcpStream| {
        let mut arrived = vec![0; payload.len()];
        stream.read_exact(&mut arrived).expect("received before it counts as stalled");
        assert!(arrived == payload, "what arrived is not what was sent");
    };
    for stream in [&one, &other] {
        stream.set_read_timeout(Some(STALLED)).expect("a timeout");
    }
    thread::scope(|scope| {
        scope.spawn(|| send(&one));
        scope.spawn(|| send(&other));
        scope.spawn(|| receive(&one));
        receive(&other);
    });
}

#[test]
fn payload_survives_every_combination_of_offloads() {
    if !can_attach() {
        return;
    }
    isolated(|| {
        let wire = Wire::create();
        let port = Port::attach("port", &AttachOptions::default()).expect("attached");
        for (guest, host) in OFFLOADS.iter().flat_map(|a| OFFLOADS.iter().map(move |b| (a, b))) {
            wire.set_offloads(guest, host);
            for (v6, guest_opens) in [(false, true), (false, false), (true, true), (true, false)] {
                let (here, there) = wire.connect(v6, guest_opens);
                let local = here.local_addr().expect("an address");
                let peer = here.peer_addr().expect("an address");
                exchange(here, there);
                let flows = port.flows().expect("flows");
                let flow = flows.iter().find(|flow| (flow.guest, flow.peer) == (local, peer));
                let flow = flow.expect("the flow is known");
                assert!(flow.state.is_managed());
                assert!(flow.state.has(sys::FLOW_ECN_FABRIC), "{guest}; {host}: no ECN");
            }
        }
        let counted = port.counters().expect("counters");
        for never in [
            counters::MALFORMED,
            counters::BAD_OPTIONS,
            counters::BAD_FLAGS,
            counters::UNKNOWN,
            counters::CONTENDED,
            counters::REWRITE_FAILED,
        ] {
            assert_eq!(counted.get(never), 0, "{}", never.meaning);
        }
    });
}
