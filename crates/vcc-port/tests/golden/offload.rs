//! Offloads: partial checksums, super-segments, and VLAN tags taken out of the frame. Two TAP
//! devices are joined by a bridge: the guest's, with the datapath attached, and the fabric's.

use std::path::Path;

use vcc_engine::Params;
use vcc_frames::wire::*;
use vcc_frames::{Packet, checksum, payload};
use vcc_port::{AttachOptions, Port, counters};
use vcc_testing::{can_attach, ip, isolated, skip, tun};

use crate::conversation::{Connection, Shape};
use crate::direction::Direction::{self, FromGuest, ToGuest};
use crate::layout::Layout;
use crate::setup::usually;
use crate::tap::{DATA_VALID, GSO_ECN, GSO_NONE, GSO_TCPV4, GSO_TCPV6, Tap, VnetHeader};

const SEG_BYTES: usize = 1440;
/// The window of the peer, at scale 7. The underlay's window is smaller, although it is shown at
/// scale 5.
const OFFERED: u16 = 502;

/// The state of a checksum when a device delivers a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sum {
    /// The sum of the pseudo-header only; the next device completes it.
    Partial,
    Full,
    /// Full, and verified by the device.
    Verified,
}

struct Wire {
    guest: Tap,
    fabric: Tap,
    port: Port,
    connection: Connection,
    offloads: bool,
}

impl Wire {
    fn new(offloads: bool) -> Self {
        let guest = Tap::create("guest0");
        let fabric = Tap::create("fabric0");
        for tap in [&guest, &fabric] {
            tap.set_offloads(offloads);
        }
        ip("link add bridge0 type bridge");
        for device in ["guest0", "fabric0"] {
            ip(&format!("link set {device} master bridge0 up"));
        }
        ip("link set bridge0 up");
        let port = Port::attach("guest0", &options()).expect("it attaches");
        let connection = Connection::new(Shape::plain(FromGuest), 0);
        Wire { guest, fabric, port, connection, offloads }
    }

    /// Sends a frame into one device. `gso_size` of 0: no super-segment.
    fn send(&mut self, from: Direction, sum: Sum, gso_size: usize, packet: &Packet) {
        self.connection.sent(from, packet);
        let mut frame = packet.frame();
        let at = Layout::parse(&frame, 0).expect("well-formed");
        let mut header = VnetHeader::default();
        match sum {
            Sum::Full => {}
            Sum::Verified => header.flags = DATA_VALID,
            Sum::Partial => {
                checksum::make_partial(&mut frame, &at);
                header = VnetHeader::partial(at.l4, TCP_CHECK_AT);
            }
        }
        if gso_size > 0 {
            header.gso_type = if at.ipv6 { GSO_TCPV6 } else { GSO_TCPV4 };
            header.gso_size = gso_size as u16;
        }
        self.ends(from).0.send(header, &frame);
    }

    /// The devices at which a direction begins and ends.
    fn ends(&self, from: Direction) -> (&Tap, &Tap) {
        match from {
            FromGuest => (&self.guest, &self.fabric),
            ToGuest => (&self.fabric, &self.guest),
        }
    }

    /// Receives the next frame at the other end, and completes its checksum.
    fn receive(&self, from: Direction) -> (VnetHeader, Vec<u8>, Layout) {
        let guest_port = self.connection.key().0.port();
        let ours = |frame: &[u8]| {
            let at = Layout::parse(frame, 0).ok();
            at.is_some_and(|at| at.addresses(frame).iter().any(|end| end.port() == guest_port))
        };
        let (header, mut frame) = self.ends(from).1.receive(ours);
        let at = Layout::parse(&frame, 0).expect("ours");
        if header.is_partial() {
            assert_eq!(usize::from(header.csum_start), at.l4);
            checksum::complete(&mut frame, &at);
        }
        assert!(checksum::verify(&frame, &at), "{header:?}");
        (header, frame, at)
    }

    fn pass(&mut self, from: Direction, sum: Sum, packet: &Packet) -> (Vec<u8>, Layout) {
        self.send(from, sum, 0, packet);
        let (header, frame, at) = self.receive(from);
        assert_eq!(header.gso_type, GSO_NONE);
        assert_eq!(header.is_partial(), self.offloads && sum == Sum::Partial, "left for the next");
        (frame, at)
    }

    fn handshake(&mut self, sum: Sum) {
        let (frame, at) = self.pass(FromGuest, sum, &self.connection.syn());
        assert_eq!(at.flags(&frame), SYN | AE | ECE | CWR);
        let mut syn_ack = self.connection.syn_ack();
        syn_ack.flags |= ECE;
        let (frame, at) = self.pass(ToGuest, sum, &syn_ack);
        assert_eq!(at.flags(&frame), SYN | ACK);
        let options = &frame[at.l4 + TCP_BYTES..at.payload];
        assert!(options.starts_with(&[OPTION_MSS, 4, 0x05, 0xa0]), "1440: {options:02x?}");
        assert!(options.windows(3).any(|part| part == [OPTION_WSCALE, 3, 5]), "{options:02x?}");
        self.pass(FromGuest, sum, &self.connection.packet(FromGuest));
    }

    fn data(&self) -> Packet {
        let mut packet = self.connection.packet(FromGuest);
        packet.payload = payload(3 * SEG_BYTES);
        packet
    }

    /// Sends the peer's ACK with ECE; the guest's next data will carry CWR.
    fn echo(&mut self, sum: Sum) {
        let mut ack = self.connection.packet(ToGuest);
        (ack.flags, ack.window) = (ACK | ECE, OFFERED);
        let (frame, at) = self.pass(ToGuest, sum, &ack);
        assert_eq!(at.flags(&frame), ACK);
        assert!(at.window(&frame) < OFFERED, "the underlay's window");
    }
}

fn options() -> AttachOptions {
    usually(Params::with(|p| {
        p.initial_window_segs = 10;
        p.window_max_bytes = 2 << 20;
    }))
}

/// Runs `test` with a connection of each family, with and without a tag, one after the other.
fn every_shape(offloads: bool, test: impl Fn(&mut Wire) + Sync) {
    if !can_attach() {
        return;
    }
    if !Path::new(tun::TUN).exists() {
        return skip("no /dev/net/tun");
    }
    isolated(|| {
        let mut wire = Wire::new(offloads);
        let shapes = Shape::all().filter(|shape| shape.opener == FromGuest);
        for (shape, guest_port) in shapes.zip(33_000..) {
            wire.connection = Connection::new(shape, guest_port);
            wire.connection.offers.timestamps = false;
            test(&mut wire);
        }
    });
}

#[test]
fn partial_and_full_checksums_stay_right() {
    every_shape(true, |wire| {
        for sum in [Sum::Partial, Sum::Full, Sum::Verified] {
            wire.handshake(sum);
            let mut data = wire.data();
            data.payload.truncate(SEG_BYTES - 1);
            let (frame, at) = wire.pass(FromGuest, sum, &data);
            assert_eq!(at.ecn(&frame), ECT_0);
            let mut marked = wire.connection.packet(ToGuest);
            (marked.payload, marked.traffic_class) = (payload(333), CE);
            let (frame, at) = wire.pass(ToGuest, sum, &marked);
            assert_eq!(at.ecn(&frame), 0);
            let (frame, at) = wire.pass(FromGuest, sum, &wire.connection.packet(FromGuest));
            assert_eq!(at.flags(&frame), ACK | ECE);
            // The next round is another connection with the same ports.
            wire.connection.guest_next = wire.connection.guest_next.wrapping_add(1_000_000);
        }
        let flows = wire.port.flows().expect("flows");
        let key = wire.connection.key();
        // Also if the device took the tag out of the frame.
        assert!(flows.iter().any(|flow| (flow.guest, flow.peer, flow.vlan) == key));
    });
}

#[test]
fn super_segments_stay_whole() {
    every_shape(true, |wire| {
        wire.handshake(Sum::Partial);
        for cwr in [0, CWR] {
            wire.send(FromGuest, Sum::Partial, SEG_BYTES, &wire.data());
            let (header, frame, at) = wire.receive(FromGuest);
            assert_eq!(usize::from(header.gso_size), SEG_BYTES);
            assert_eq!((at.ecn(&frame), at.flags(&frame)), (ECT_0, ACK | cwr));
            assert_eq!(frame[at.payload..at.end], payload(3 * SEG_BYTES));
            wire.echo(Sum::Verified);
        }
        let mut marked = wire.data();
        std::mem::swap(&mut marked.from, &mut marked.to);
        (marked.seq, marked.ack) = (marked.ack, marked.seq);
        marked.traffic_class = CE;
        wire.send(ToGuest, Sum::Partial, SEG_BYTES, &marked);
        let (header, frame, at) = wire.receive(ToGuest);
        assert_eq!((usize::from(header.gso_size), at.ecn(&frame)), (SEG_BYTES, 0));
        let counters = wire.port.counters().expect("counters");
        assert_eq!(counters.get(counters::REWRITE_FAILED), 0);
    });
}

/// Without offloads in the fabric's device, the kernel segments a super-segment behind the
/// datapath: the rewritten header must be right for each segment, with CWR on the first one only
/// (RFC 3168, 6.1.2).
#[test]
fn super_segments_are_cut_after_the_rewrite() {
    every_shape(false, |wire| {
        wire.handshake(Sum::Partial);
        for cwr in [0, CWR] {
            wire.send(FromGuest, Sum::Partial, SEG_BYTES, &wire.data());
            for part in 0..3 {
                let (header, frame, at) = wire.receive(FromGuest);
                assert!(!header.is_partial());
                assert_eq!(header.gso_type & !GSO_ECN, GSO_NONE);
                assert_eq!(at.end - at.payload, SEG_BYTES);
                assert_eq!(at.ecn(&frame), ECT_0);
                let flags = at.flags(&frame) & !PSH;
                assert_eq!(flags, ACK | if part == 0 { cwr } else { 0 }, "part {part}");
            }
            wire.echo(Sum::Full);
        }
    });
}

/// The device has taken the outer tag out of the frame before the datapath sees it.
#[test]
fn frames_with_two_tags_are_left_alone() {
    every_shape(true, |wire| {
        for outer in [ETHERTYPE_VLAN, ETHERTYPE_QINQ] {
            let mut packet = wire.connection.syn();
            packet.tags = vec![(outer, 5), (ETHERTYPE_VLAN, 7)];
            let frame = packet.frame();
            wire.guest.send(VnetHeader::default(), &frame);
            wire.fabric.receive(|received| received == frame);
        }
        assert!(wire.port.flows().expect("flows").is_empty());
        let counters = wire.port.counters().expect("counters");
        assert!(counters.get(counters::NOT_IP) >= 2);
    });
}
