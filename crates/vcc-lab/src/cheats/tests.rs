use super::segment::Read;
use super::*;
use vcc_frames::options;
use vcc_frames::wire::{ACK, CE, ECE, ECT_0, RST, SYN};
use vcc_frames::{checksum, payload};

const GUEST: ([u8; 4], u16) = ([10, 0, 0, 1], 40_000);
const PEER: ([u8; 4], u16) = ([10, 0, 0, 2], 80);

fn cheater(name: &str) -> Box<dyn Tamper> {
    let cheat = CHEATS.iter().find(|cheat| cheat.name == name);
    cheat.unwrap_or_else(|| panic!("no cheat '{name}'")).tamper()
}

fn sent(bytes: usize) -> Packet {
    Packet { payload: payload(bytes), ..Packet::new(GUEST.into(), PEER.into()) }
}

fn received(bytes: usize) -> Packet {
    Packet { window: 10, payload: payload(bytes), ..Packet::new(PEER.into(), GUEST.into()) }
}

fn read(frames: &[Vec<u8>]) -> Vec<Packet> {
    let read = |frame: &Vec<u8>| Packet::read_ipv4(frame).expect("a segment");
    frames.iter().map(read).collect()
}

/// Whether the cheat passes a segment as the guest sent it.
fn passes(tamper: &mut dyn Tamper, segment: &Packet) -> bool {
    let frame = segment.frame();
    tamper.sends(frame.clone()).sent == [frame]
}

#[test]
fn each_has_a_name_of_its_own_and_leaves_alone_what_is_not_tcp() {
    let arp = [&[0xff; 12][..], &[0x08, 0x06], &[0; 28]].concat();
    for (at, cheat) in CHEATS.iter().enumerate() {
        assert!(CHEATS[..at].iter().all(|other| other.name != cheat.name), "{}", cheat.name);
        let mut tamper = cheat.tamper();
        let (to_port, to_kernel) = (tamper.sends(arp.clone()), tamper.receives(arp.clone()));
        assert_eq!(to_port, Tampered { sent: vec![arp.clone()], received: Vec::new() });
        assert_eq!(to_kernel, Tampered { sent: Vec::new(), received: vec![arp.clone()] });
    }
}

#[test]
fn whoever_ignores_the_window_sees_the_largest_but_on_a_syn() {
    for name in ["ignores-window", "tiny-segments", "own-syn-rst", "fragments", "signed"] {
        let mut tamper = cheater(name);
        let window = |tamper: &mut dyn Tamper, flags| {
            let segment = Packet { flags, ..received(0) };
            read(&tamper.receives(segment.frame()).received)[0].window
        };
        assert_eq!(window(&mut *tamper, ACK), 0xffff, "{name}");
        assert_eq!(window(&mut *tamper, SYN | ACK), 10, "{name}");
    }
}

#[test]
fn marks_are_kept_from_the_kernel_and_from_the_sender() {
    let echo = Packet { flags: ACK | ECE, ..received(0) };
    let delivered = cheater("ignores-ece").receives(echo.frame()).received;
    assert_eq!(read(&delivered)[0].flags, ACK);
    let marked = Packet { traffic_class: CE, ..received(100) };
    for name in ["hides-marks", "forges-reports"] {
        let mut tamper = cheater(name);
        assert_eq!(read(&tamper.receives(marked.frame()).received)[0].traffic_class, ECT_0);
        let echo = Packet { flags: ACK | ECE, ..sent(0) };
        assert_eq!(read(&tamper.sends(echo.frame()).sent)[0].flags, ACK);
    }
    let reduced = cheater("sets-cwr").sends(sent(9).frame()).sent;
    assert_eq!(read(&reduced)[0].flags, ACK | vcc_frames::wire::CWR);
}

#[test]
fn an_acknowledgement_is_split_and_repeated() {
    let acks = |tamper: &mut dyn Tamper, ack| {
        let out = tamper.sends(Packet { ack, ..sent(0) }.frame());
        read(&out.sent).iter().map(|segment| segment.ack).collect::<Vec<_>>()
    };
    let mut split = cheater("splits-acks");
    assert_eq!(acks(&mut *split, 0xffff_ff00), [0xffff_ff00]);
    let expected: Vec<u32> = (1..=8).map(|part| 0xffff_ff00_u32.wrapping_add(362 * part)).collect();
    assert_eq!(acks(&mut *split, 0xffff_ff00_u32.wrapping_add(2896)), expected);
    assert_eq!(acks(&mut *cheater("spoofs-duplicates"), 7), [7; 4]);
}

#[test]
fn an_optimist_acknowledges_ahead_until_a_segment_is_missing() {
    let mut tamper = cheater("optimistic-acks");
    let ahead = |tamper: &mut dyn Tamper, seq: u32| {
        tamper.receives(Packet { seq, ..received(1000) }.frame());
        let ack = seq + 1000;
        read(&tamper.sends(Packet { ack, ..sent(0) }.frame()).sent)[0].ack - ack
    };
    let all: Vec<u32> = (0..110).map(|i| ahead(&mut *tamper, i * 1000)).collect();
    assert_eq!((all[99], all[100], all[109]), (0, 2000, 2000));
    assert_eq!(ahead(&mut *tamper, 112_000), 0, "a hole");
    assert_eq!(ahead(&mut *tamper, 110_000), 0, "a retransmission");
    assert_eq!(ahead(&mut *tamper, 113_000), 2000);
}

#[test]
fn reports_are_forged_from_the_handshake_on() {
    let mut tamper = cheater("forges-reports");
    let synack = Packet { flags: SYN | ACK, ..sent(0) };
    assert_eq!(read(&tamper.sends(synack.frame()).sent)[0].options, options::hello(2));
    tamper.receives(received(1000).frame());
    assert_eq!(read(&tamper.sends(sent(0).frame()).sent)[0].options, options::pack(1001, 0));
    assert!(passes(&mut *tamper, &sent(100)), "data carries no PACK");
}

#[test]
fn each_retransmission_is_called_needless_once() {
    let mut tamper = cheater("dsack-undo");
    for seq in [0, 1000, 2000, 1000] {
        tamper.receives(Packet { seq, ..received(1000) }.frame());
    }
    let other = options::join(&[options::timestamps(1, 2), options::sack(&[(5000, 6000)])]);
    let mut answer = Packet { options: other, ack: 3000, ..sent(0) };
    let mut passed = read(&tamper.sends(answer.frame()).sent).remove(0);
    let blocks = options::sack(&[(1000, 2000), (5000, 6000)]);
    assert_eq!(passed.take_sack().as_deref(), Some(&blocks[2..]));
    assert_eq!(answer.take_sack().as_deref(), Some(&blocks[10..]));
    assert!(passes(&mut *tamper, &answer));
}

#[test]
fn tiny_segments_and_fragments_carry_what_was_sent() {
    let whole = Packet { seq: 0xffff_fff0, ..sent(1448) };
    let tiny = read(&cheater("tiny-segments").sends(whole.frame()).sent);
    assert_eq!(tiny.len(), 1448_usize.div_ceil(64));
    assert_eq!(tiny.iter().flat_map(|it| it.payload.clone()).collect::<Vec<_>>(), whole.payload);
    assert_eq!(tiny[1].seq, whole.seq.wrapping_add(64));
    let mut tamper = cheater("tiny-segments");
    for _ in 0..40 {
        tamper.sends(whole.frame());
    }
    assert!(passes(&mut *tamper, &whole), "only the first ones are tiny");

    let fragments = cheater("fragments").sends(whole.frame()).sent;
    let (headers, tcp) = (34, whole.frame()[34..].to_vec());
    let joined: Vec<u8> = fragments.iter().flat_map(|it| it[headers..].to_vec()).collect();
    assert_eq!((fragments.len(), joined), (2, tcp));
    let offsets = fragments.iter().map(|it| [it[20], it[21]]);
    assert_eq!(offsets.collect::<Vec<_>>(), [[0x20, 0], [0, 64]]);
    assert!(fragments.iter().all(|it| checksum::checksum(&it[14..34]) == 0));
    assert!(passes(&mut *cheater("fragments"), &sent(0)));
}

#[test]
fn every_hundredth_segment_follows_what_its_peer_throws_away() {
    let hundredth = |name| {
        let mut tamper = cheater(name);
        assert!((1..100).all(|_| passes(&mut *tamper, &sent(100))));
        tamper.sends(sent(100).frame()).sent
    };
    let injected = hundredth("own-syn-rst");
    let flags: Vec<u16> = read(&injected).iter().map(|segment| segment.flags).collect();
    assert_eq!(flags, [SYN, RST, RST | ACK, ACK]);
    let is_right: Vec<bool> = injected
        .iter()
        .zip(read(&injected))
        .map(|(frame, segment)| checksum::verify(frame, &segment.headers()))
        .collect();
    assert_eq!(is_right, [true, true, false, true]);
    let signed = read(&hundredth("signed"));
    assert_eq!((signed.len(), &signed[0].options[..2]), (2, &[19, 18][..]));
    assert!(signed[0].payload.is_empty() && signed[1].options.is_empty());
}
