//! What is never acknowledged in the guest's name.

use vcc_domain::{Frame, Out, Verdict};
use vcc_engine::{Mode, Params, sys};
use vcc_frames::wire::*;
use vcc_frames::{MACS, Packet, options};

use crate::guest::{FIRST_WINDOW, Guest, NO_ACKS, SEG_BYTES, snooping};

type Change = fn(&mut Packet);

/// Data that would be acknowledged at once but for one thing.
fn pushed(guest: &Guest) -> Packet {
    let mut packet = guest.peer_packet(0, SEG_BYTES);
    packet.flags |= PSH;
    packet
}

#[test]
fn what_the_guest_may_discard() {
    let changes: [(&str, Change); 8] = [
        ("behind a hole", |packet| packet.seq = packet.seq.wrapping_add(SEG_BYTES)),
        ("urgent", |packet| packet.flags |= URG),
        ("an ACK of what was not sent", |packet| packet.ack = packet.ack.wrapping_add(1)),
        ("an old ACK", |packet| packet.ack = packet.ack.wrapping_sub(100_000)),
        ("no guest of ours", |packet| packet.macs[0] = [2, 0, 0, 0, 0, 9]),
        ("IP options", |packet| packet.ip_options = vec![1, 1, 1, 1]),
        ("a signature", |packet| packet.options = options::join(&[vec![29, 4, 0, 0]])),
        ("malformed options", |packet| packet.options = vec![3, 77, 0, 0]),
    ];
    for (what, change) in changes {
        let mut guest = Guest::new().accept();
        let mut packet = pushed(&guest);
        change(&mut packet);
        assert_eq!(guest.receive(&packet).acks(), NO_ACKS, "{what}");
        // What lies behind a hole may be promised later.
        assert_eq!(guest.port.promised_bytes() > 0, what == "behind a hole", "{what}");
        assert_eq!(guest.receive(&pushed(&guest)).acks(), [SEG_BYTES], "without {what}");
    }
}

#[test]
fn a_wrong_checksum() {
    for at in [14 + IPV4_CHECK_AT, 34 + TCP_CHECK_AT, 100] {
        let mut guest = Guest::new().accept();
        let mut bytes = pushed(&guest).frame();
        bytes[at] ^= 0x10;
        assert_eq!(guest.receive_frame(Frame::full(bytes)).acks(), NO_ACKS, "{at}");
        assert_eq!(guest.receive(&pushed(&guest)).acks(), [SEG_BYTES]);
    }
}

/// PAWS (RFC 7323, 5.3); without timestamps it may be dropped (3.2).
#[test]
fn timestamps_that_the_guest_would_not_accept() {
    let mut guest = Guest { stamps: Some((700, 100)), ..Guest::new() }.accept();
    guest.stamps = Some((700, 99));
    assert_eq!(guest.receive(&pushed(&guest)).acks(), NO_ACKS, "older than the SYN's");
    guest.stamps = Some((700, 101));
    let bare = Packet { options: Vec::new(), ..pushed(&guest) };
    assert_eq!(guest.receive(&bare).acks(), NO_ACKS, "none");
    assert_eq!(guest.receive(&pushed(&guest)).acks(), [SEG_BYTES]);
}

#[test]
fn connections_whose_acknowledgements_cannot_be_made() {
    let transparent = Params(sys::vcc_params { underlay: 0, ..snooping().0 });
    let mptcp = vec![30, 4, 0, 0];
    let guests = [
        ("AccECN", Guest { ecn: [AE | ECE | CWR, AE], ..Guest::new() }),
        ("MPTCP", Guest { syn_options: mptcp, ..Guest::with(transparent) }),
        (
            "shadow",
            Guest::with(Params(sys::vcc_params { mode: Mode::Shadow.number(), ..snooping().0 })),
        ),
        ("off", Guest::with(Params::default())),
    ];
    for (what, guest) in guests {
        let mut guest = guest.accept();
        assert_eq!(guest.receive(&pushed(&guest)).acks(), NO_ACKS, "{what}");
    }
    assert_eq!(Guest::with(transparent).accept_and_push(), [SEG_BYTES], "transparent otherwise");
}

/// Its link and IP headers are what an acknowledgement in its name would begin with. Its ring fills up,
/// and what peers may send is widened when it has read that.
#[test]
fn what_a_guest_gets_whose_frames_all_have_ip_options() {
    let mut guest = Guest { ip_options: vec![1, 1, 1, 1], ring_segs: 4, ..Guest::new() }.accept();
    guest.acks(0, 400_000);
    let unsaid = Packet { macs: [[0; 6]; 2], ..pushed(&guest) };
    for packet in [pushed(&guest), unsaid] {
        assert_eq!(guest.receive(&packet).acks(), NO_ACKS);
    }
    for free_segs in [0, 4, 256] {
        assert_eq!(guest.reads(free_segs).acks(), NO_ACKS);
    }
    assert_eq!(guest.wait_ms(2000).acks(), NO_ACKS);
}

#[test]
fn data_after_the_guests_fin() {
    let mut guest = Guest::new().accept();
    let mut fin = guest.guest_packet(0, 64_000);
    fin.flags |= FIN;
    guest.send(&fin);
    assert_eq!(guest.receive(&pushed(&guest)).acks(), NO_ACKS);
}

impl Guest {
    fn accept_and_push(self) -> Vec<u32> {
        let mut guest = self.accept();
        guest.receive(&pushed(&guest)).acks()
    }
}

/// What began before is not snooped: its timestamps are not known.
#[test]
fn a_connection_from_before() {
    let mut guest = Guest::with(Params::default()).accept();
    guest.port.set_params(snooping());
    guest.acks(0, 64_000);
    assert_eq!(guest.receive(&pushed(&guest)).acks(), NO_ACKS);
    assert_eq!(pushed(&guest).macs, [MACS[1], MACS[0]]);
}

/// The guest begins again into a connection that the port keeps, for the answer is no sound one. What
/// the guest acknowledges then is old to the peer, and so is a window behind it.
#[test]
fn a_larger_window_behind_an_old_acknowledgement() {
    let mut guest = Guest::new();
    open_actively(&mut guest, 1 << 31);
    open_actively(&mut guest, 1 << 30);
    assert_eq!(guest.reads(256).to_fabric, []);
}

/// A SYN-ACK of the guest to no SYN that the port believes, while the port repairs what it holds.
#[test]
fn another_connections_data() {
    let splits = Params(sys::vcc_params { act: sys::ACT_SPLIT as u8, ..snooping().0 });
    let mut guest = Guest::with(splits);
    open_actively(&mut guest, 1 << 31);
    let data = Packet { ack: (1 << 31) + 1, window: 500, ..guest.guest_packet(0, 0) };
    assert!(guest.send(&Packet { payload: vec![7; SEG_BYTES as usize], ..data.clone() }).passed);
    let syn_ack =
        Packet { seq: data.seq.wrapping_sub(1), ack: (1 << 31) - 9000, flags: SYN | ACK, ..data };
    let _ = guest.send(&syn_ack);
    let again = guest.wait_ms(3000).to_fabric;
    assert!(again.iter().any(|segment| segment.payload_bytes > 0), "nothing is repaired");
    assert!(again.windows(2).all(|both| both[0].ack == both[1].ack), "{again:?}");
}

/// An acknowledgement of what no peer can have sent moves no edge: the next segment's window is not
/// shut by it.
#[test]
fn an_acknowledgement_from_nowhere() {
    let mut guest = Guest::new().accept();
    let before = guest.acks(0, FIRST_WINDOW).to_fabric;
    let stray = guest.guest_packet((1 << 31) - 1000, 150_000);
    assert!(guest.send(&Packet { payload: vec![7; 10], ..stray }).passed);
    let data = Packet { payload: vec![7; 10], ..guest.guest_packet(0, FIRST_WINDOW) };
    let after = guest.send(&data).to_fabric;
    assert!(before.len() == 1 && after.len() == 1 && after[0].window >= before[0].window);
}

/// The guest opens a connection, and the peer answers with this sequence number.
fn open_actively(guest: &mut Guest, irs: u32) {
    let syn = Packet { flags: SYN, ack: 0, ..guest.guest_packet(0, 0) };
    let syn = Packet { seq: syn.seq.wrapping_sub(1), ..syn };
    let ack = syn.seq.wrapping_add(1);
    assert!(guest.send(&syn).passed);
    let syn_ack = Packet { seq: irs, ack, flags: SYN | ACK, ..guest.peer_packet(0, 0) };
    let mut frame = Frame::full(syn_ack.frame());
    let (verdict, _) = guest.port.to_guest(guest.now_ns, &mut frame, &mut Out::default());
    assert_eq!(verdict, Verdict::Pass);
    let ack = Packet { ack: irs.wrapping_add(1), window: 500, ..guest.guest_packet(0, 0) };
    assert!(guest.send(&ack).passed);
}
