//! A detour of what passes a bridge's tap.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

use vcc_frames::Packet;
use vcc_net::checksum;
use vcc_port::coexistence::{self, Finding};
use vcc_port::{AttachOptions, Detour, Error, Port};
use vcc_testing::{can_attach, eventually, ip, isolated, skip, tun};

const LINK_MAX_MS: libc::c_int = 2000;
const NOTHING_MS: libc::c_int = 100;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
const PROTOCOL_AT: usize = 14 + 9;
const NEXT_AT: usize = 14 + 6;

/// A tap with its other end.
struct Tap(File);

impl Tap {
    fn up(name: &str) -> Self {
        let file = tun::create(name, libc::IFF_TAP, libc::O_NONBLOCK);
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        ip(&format!("link set {name} up"));
        Tap(file)
    }

    fn send(&self, frame: &[u8]) {
        (&self.0).write_all(frame).expect("sent");
    }

    fn next_within(&self, patience_ms: libc::c_int) -> Option<Vec<u8>> {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live pollfd.
        if unsafe { libc::poll(&mut poll, 1, patience_ms) } != 1 {
            return None;
        }
        let mut frame = vec![0; 4096];
        let bytes = (&self.0).read(&mut frame).expect("a frame");
        frame.truncate(bytes);
        Some(frame)
    }

    #[track_caller]
    fn expect(&self, frame: &[u8]) {
        let next = self.next_within(LINK_MAX_MS).expect("a frame");
        assert!(next == frame, "{next:02x?} instead of {frame:02x?}");
    }

    #[track_caller]
    fn expect_nothing(&self) {
        assert_eq!(self.next_within(NOTHING_MS), None);
    }
}

/// A guest at a tap in a bridge, and a peer at another one.
struct Bed {
    guest: Tap,
    peer: Tap,
    guest_tap: Tap,
    fabric_tap: Tap,
}

impl Bed {
    fn new() -> Self {
        ip("link add br0 type bridge mcast_snooping 0");
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/br0/disable_ipv6", "1");
        ip("link set br0 up");
        let [guest, peer, guest_tap, fabric_tap] =
            ["dev0", "peer0", "vcc-g0", "vcc-f0"].map(Tap::up);
        ip("link set dev0 master br0");
        ip("link set peer0 master br0");
        Bed { guest, peer, guest_tap, fabric_tap }
    }

    fn attach(&self) -> Result<Detour, Error> {
        let mut detour = Detour::prepare("dev0", "vcc-g0", "vcc-f0")?;
        detour.open()?;
        Ok(detour)
    }

    /// Each goes past the port, and arrives once.
    #[track_caller]
    fn makes_the_detour(&self, frame: &[u8]) {
        self.guest.send(frame);
        self.guest_tap.expect(frame);
        self.peer.expect_nothing();
        self.fabric_tap.send(frame);
        self.peer.expect(frame);
        let back = reversed(frame);
        self.peer.send(&back);
        self.fabric_tap.expect(&back);
        self.guest.expect_nothing();
        self.guest_tap.send(&back);
        self.guest.expect(&back);
        self.expect_nothing();
    }

    #[track_caller]
    fn passes_directly(&self, frame: &[u8]) {
        self.guest.send(frame);
        self.peer.expect(frame);
        let back = reversed(frame);
        self.peer.send(&back);
        self.guest.expect(&back);
        self.expect_nothing();
    }

    #[track_caller]
    fn expect_nothing(&self) {
        for tap in [&self.guest, &self.peer, &self.guest_tap, &self.fabric_tap] {
            tap.expect_nothing();
        }
    }
}

/// With the addresses of the link exchanged, which is all that a bridge looks at.
fn reversed(frame: &[u8]) -> Vec<u8> {
    [&frame[6..12], &frame[..6], &frame[12..]].concat()
}

fn tcp(tags: &[(u16, u16)], v6: bool) -> Vec<u8> {
    let ends =
        if v6 { ["[fd00::1]:4000", "[fd00::2]:80"] } else { ["192.0.2.1:4000", "192.0.2.2:80"] };
    let [from, to] = ends.map(|end| end.parse().expect("an end"));
    Packet { tags: tags.to_vec(), ..Packet::new(from, to) }.frame()
}

/// IPv6, with a message of this type.
fn icmp_v6(kind: u8) -> Vec<u8> {
    let mut frame = tcp(&[], true);
    (frame[NEXT_AT], frame[14 + 40]) = (ICMP_V6, kind);
    frame
}

/// IPv4, with this byte behind its header.
fn other(protocol: u8, first: u8) -> Vec<u8> {
    let mut frame = tcp(&[], false);
    (frame[PROTOCOL_AT], frame[14 + 20]) = (protocol, first);
    // A bridge may look at it (br_netfilter).
    frame[24..26].fill(0);
    let check = checksum::of_ipv4(&frame[14..34]);
    frame[24..26].copy_from_slice(&check.to_be_bytes());
    frame
}

#[track_caller]
fn with_a_bed(test: impl FnOnce(Bed) + Send) {
    if !can_attach() {
        return;
    }
    if !Path::new(tun::TUN).exists() {
        return skip("no /dev/net/tun");
    }
    isolated(|| test(Bed::new()));
}

#[test]
fn the_tcp_of_a_guest_makes_the_detour_once_each_way() {
    with_a_bed(|bed| {
        let detour = bed.attach().expect("a detour");
        for tags in [&[][..], &[(0x8100, 7)], &[(0x88a8, 7), (0x8100, 9)]] {
            for v6 in [false, true] {
                bed.makes_the_detour(&tcp(tags, v6));
            }
        }
        bed.makes_the_detour(&other(ICMP, 3));
        bed.makes_the_detour(&icmp_v6(2));
        for frame in [other(UDP, 3), other(ICMP, 8), icmp_v6(135)] {
            bed.passes_directly(&frame);
        }
        end(detour);
        bed.passes_directly(&tcp(&[], false));
        bed.passes_directly(&tcp(&[(0x8100, 7)], true));
    });
}

#[test]
fn what_the_host_sends_to_the_taps_is_no_guests() {
    with_a_bed(|bed| {
        let _detour = bed.attach().expect("a detour");
        ip("address add 203.0.113.1/24 dev vcc-g0");
        let socket = std::net::UdpSocket::bind("203.0.113.1:0").expect("a socket");
        socket.set_broadcast(true).expect("a socket");
        // The kernel says that it was dropped, or does not.
        let _ = socket.send_to(b"host", "203.0.113.255:9");
        bed.expect_nothing();
    });
}

/// Waits: a child process of another test that is just starting holds copies of all files until it execs.
fn end(detour: Detour) {
    drop(detour);
    eventually("the device has no detour", || findings("detour").is_empty());
}

fn findings(kind: &str) -> Vec<Finding> {
    let all = coexistence::findings("dev0", None).expect("findings");
    all.into_iter().filter(|it| it.kind == kind).collect()
}

#[test]
fn a_device_has_one_port() {
    with_a_bed(|bed| {
        let detour = bed.attach().expect("a detour");
        let again = bed.attach().err().expect("it has one");
        assert!(matches!(again, Error::HeldByProcess { .. }), "{again}");
        let options = AttachOptions::default();
        let port = Port::attach("dev0", &options).err().expect("it has one");
        assert!(matches!(port, Error::HeldByProcess { .. }), "{port}");
        let [detours, tcx] = ["detour", "tcx"].map(findings);
        assert!(detours.len() == 1 && !detours[0].is_harmful(), "{detours:?}");
        assert!(tcx.len() == 2 && tcx.iter().all(|it| !it.is_harmful()), "{tcx:?}");
        end(detour);
        let _port = Port::attach("dev0", &options).expect("attached");
        let detour = bed.attach().err().expect("it has a port");
        assert!(matches!(detour, Error::HeldByProcess { .. }), "{detour}");
    });
}

#[test]
fn a_device_that_goes_is_reported() {
    with_a_bed(|bed| {
        let detour = bed.attach().expect("a detour");
        let is_gone = |patience_ms| {
            let fd = detour.gone().as_raw_fd();
            let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            // SAFETY: one live pollfd.
            unsafe { libc::poll(&mut poll, 1, patience_ms) == 1 }
        };
        ip("link set peer0 down");
        ip("link delete br0");
        assert!(!is_gone(NOTHING_MS));
        ip("link delete dev0");
        assert!(is_gone(LINK_MAX_MS));
    });
}

#[test]
fn only_devices_with_ethernet_have_one() {
    with_a_bed(|_bed| {
        let at = |device| Detour::prepare(device, "vcc-g0", "vcc-f0").err().expect("none");
        assert!(matches!(at("lo"), Error::NotEthernet { .. }));
        assert!(matches!(at("absent"), Error::NoSuchDevice { .. }));
        ip("link property add dev dev0 altname other0");
        assert!(at("other0").to_string().contains("another name of `dev0`"));
    });
}

/// The taps have frames when the port is about to end.
#[test]
fn what_is_in_the_taps_finds_its_way_when_the_detour_closes() {
    with_a_bed(|bed| {
        let mut detour = bed.attach().expect("a detour");
        let frame = tcp(&[], false);
        bed.guest.send(&frame);
        bed.guest_tap.expect(&frame);
        detour.close();
        bed.fabric_tap.send(&frame);
        bed.peer.expect(&frame);
        bed.passes_directly(&frame);
    });
}
