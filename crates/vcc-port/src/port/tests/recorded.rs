use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use vcc_testing::{Netns, guest};

use super::*;
use crate::emit::{Socket, Way};
use crate::{RecordedPacket, RecordedSide, Recorder, RecorderOptions};

const WAIT: Duration = Duration::from_secs(10);
/// Longer than the kernel takes to wake a reader.
const QUIET: Duration = Duration::from_millis(300);
/// Of Ethernet and IPv4.
const TCP_AT: usize = 34;

fn options() -> RecorderOptions {
    RecorderOptions {
        sides: RecordedSide::BOTH.to_vec(),
        kept_max_bytes: Recorder::KEPT_MAX_BYTES,
        buffer_bytes: 8 << 20,
    }
}

fn exchange(guest: &Netns, host: &str, bytes: usize) {
    let listener = TcpListener::bind((host, 0)).expect("a listener");
    let to = listener.local_addr().expect("an address");
    let mut here = guest.inside(|| TcpStream::connect(to)).expect("inside").expect("connected");
    let mut there = listener.accept().expect("accepted").0;
    thread::scope(|scope| {
        scope.spawn(|| here.write_all(&vec![1; bytes]).expect("sent"));
        there.read_exact(&mut vec![0; bytes]).expect("received");
    });
}

/// What is recorded until nothing more comes.
fn all(recorder: &mut Recorder) -> Vec<RecordedPacket> {
    let mut packets = Vec::new();
    let mut wait = WAIT;
    while let Some(packet) = recorder.next(wait).expect("a recording") {
        packets.push(packet);
        wait = QUIET;
    }
    packets
}

fn is_tcp(packet: &&RecordedPacket) -> bool {
    packet.frame[12..14] == [8, 0] && packet.frame[23] == 6
}

fn flags(packet: &RecordedPacket) -> u8 {
    packet.frame[TCP_AT + 13]
}

fn window(packet: &RecordedPacket) -> [u8; 2] {
    [packet.frame[TCP_AT + 14], packet.frame[TCP_AT + 15]]
}

#[test]
fn a_recording_shows_both_sides_of_a_port() {
    on_a_host(|| {
        const BYTES: usize = 1 << 20;
        let guest = guest();
        let ports = [attach()];
        let before = program_ids(PORT);
        let mut recorder = Recorder::start(&ports, &options()).expect("a recording");
        let during = program_ids(PORT);
        assert_eq!(during.len(), 6, "{during:?}");
        assert_eq!([during[1], during[4]], before[..], "the port's are in the middle");
        exchange(&guest, "192.0.2.2", BYTES);
        let packets = all(&mut recorder);
        let of = |side, is_from_guest| {
            let wanted = move |it: &&RecordedPacket| {
                (it.side, it.is_from_guest, it.port) == (side, is_from_guest, 0) && is_tcp(it)
            };
            packets.iter().filter(wanted).collect::<Vec<_>>()
        };
        let [sent, received] = [true, false].map(|from| of(RecordedSide::Guest, from));
        let [left, came] = [true, false].map(|from| of(RecordedSide::Fabric, from));
        assert_eq!((sent.len(), came.len()), (left.len(), received.len()));
        // Of a guest without ECN, the fabric sees a SYN with it: the port's programs ran in between.
        assert_eq!((flags(sent[0]), flags(left[0])), (0x02, 0xc2));
        let payload = |packets: &[&RecordedPacket]| {
            let header_bytes =
                |it: &RecordedPacket| TCP_AT + usize::from(it.frame[TCP_AT + 12] >> 4) * 4;
            packets.iter().map(|it| it.frame_bytes as usize - header_bytes(it)).sum::<usize>()
        };
        assert_eq!((payload(&sent), payload(&left)), (BYTES, BYTES));
        assert!(packets.iter().all(|it| it.frame.len() == it.frame_bytes as usize));
        let shown = came.iter().zip(&received).filter(|(one, other)| window(one) != window(other));
        assert!(shown.count() > 0, "the port showed the guest windows of its own");
        let early = packets.windows(2).filter(|pair| pair[1].time < pair[0].time);
        let most_early_ms = early.map(|pair| (pair[0].time - pair[1].time).as_millis()).max();
        assert!(most_early_ms.unwrap_or_default() < 50, "{most_early_ms:?}");
        for side in RecordedSide::BOTH {
            assert_eq!(recorder.lost(0, side).expect("a count"), 0);
        }
        recorder.stop_all();
        eventually("only the port's programs are left", || program_ids(PORT) == before);
        drop(recorder);
        exchange(&guest, "192.0.2.2", BYTES);
    });
}

#[test]
fn packets_for_which_there_is_no_room_are_counted() {
    on_a_host(|| {
        let guest = guest();
        let ports = [attach()];
        let options = RecorderOptions {
            sides: vec![RecordedSide::Fabric],
            kept_max_bytes: 100,
            buffer_bytes: 1 << 14,
        };
        let mut recorder = Recorder::start(&ports, &options).expect("a recording");
        assert_eq!(program_ids(PORT).len(), 4);
        exchange(&guest, "192.0.2.2", 16 << 20);
        let packets = all(&mut recorder);
        assert!(packets.iter().all(|it| it.side == RecordedSide::Fabric));
        assert!(packets.iter().all(|it| it.frame.len() == 100.min(it.frame_bytes as usize)));
        assert!(!packets.is_empty() && packets.len() < 64, "{} packets", packets.len());
        let lost = recorder.lost(0, RecordedSide::Fabric).expect("a count");
        assert!(lost > 64, "{lost} packets");
        assert_eq!(recorder.lost(0, RecordedSide::Guest).expect("a count"), 0);
    });
}

#[test]
fn a_recording_has_the_tags_that_the_kernel_keeps_apart() {
    on_a_host(|| {
        let guest = guest();
        let ports = [attach()];
        let mut recorder = Recorder::start(&ports, &options()).expect("a recording");
        let sender = |device| Socket::at(device, Way::PastPrograms).expect("a socket");
        let addresses = [[0xff; 6], [2, 0, 0, 0, 0, 1]];
        let tag = [0x81, 0, 0x20, 10];
        let frame = [addresses.as_flattened(), &tag, &[0x88, 0xb5], &[7; 46]].concat();
        guest.inside(|| sender("guest").send(&frame).expect("sent")).expect("inside");
        sender(PORT).send(&frame).expect("sent");
        let packets = all(&mut recorder);
        for side in RecordedSide::BOTH {
            for is_from_guest in [true, false] {
                let is_it = |it: &RecordedPacket| {
                    (it.side, it.is_from_guest) == (side, is_from_guest)
                        && it.frame == frame
                        && it.frame_bytes as usize == frame.len()
                };
                assert!(packets.iter().any(is_it), "{side:?}, from the guest: {is_from_guest}");
            }
        }
    });
}

#[test]
fn a_recording_ends_with_its_device() {
    on_a_host(|| {
        let _guest = guest();
        let ports = [attach()];
        let recorder = Recorder::start(&ports, &options()).expect("a recording");
        assert!(recorder.is_attached(0).expect("an answer"));
        ip("link del port");
        assert!(!recorder.is_attached(0).expect("an answer"));
        let refusal = Recorder::start(&ports, &options()).err().expect("refused").to_string();
        assert!(refusal.contains("port"), "{refusal}");
    });
}
