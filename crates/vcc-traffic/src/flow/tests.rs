//! Both halves of a flow, over this machine's loopback.

use super::*;
use crate::pattern::{Pattern, Transfers, Until};
use crate::samples::Transfer;
use crate::socket;
use socket2::SockAddr;
use std::net::SocketAddr;

const ENOUGH_BYTES: u64 = 1_000_000;
const SEED: u64 = 3;

fn connected(pattern: Pattern) -> (Sender, Receiver) {
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = socket::listen(anywhere, "reno").unwrap();
    let to: SockAddr = listener.local_addr().unwrap();
    let sender = socket::tcp(anywhere, "reno").unwrap();
    sender.connect(&to).unwrap();
    let (receiver, _) = listener.accept().unwrap();
    for socket in [&sender, &receiver] {
        socket.set_nonblocking(true).unwrap();
    }
    let sender = Sender::new(sender, 0, SEED, pattern).unwrap();
    (sender, Receiver::new(receiver, 0, SEED, pattern).unwrap())
}

/// From the first byte to the end in answer to the end.
fn play_through(pattern: Pattern, bytes: u64) {
    let (mut sender, mut receiver) = connected(pattern);
    let mut scratch = vec![0; CHUNK_BYTES];
    sender.prepare_to_leave().unwrap();
    sender.send(&mut scratch).unwrap();
    assert_eq!(sender.sent_bytes(), 0, "it has not joined");
    sender.join();
    sender.start_measuring(0).unwrap();
    while receiver.received_bytes() < bytes {
        sender.send(&mut scratch).unwrap();
        assert!(receiver.receive(&mut scratch).unwrap());
    }
    sender.sample(1).unwrap();
    sender.leave().unwrap();
    assert!(!sender.take_end(&mut scratch).unwrap(), "the receiver does not know of it");
    while receiver.receive(&mut scratch).unwrap() {}
    receiver.answer_end().unwrap();
    while !sender.take_end(&mut scratch).unwrap() {}
    sender.finish().unwrap();
    let (sender, receiver) = (sender.into_half(), receiver.into_half());
    assert!(sender.payload_ok && receiver.payload_ok);
    assert_eq!(sender.sent_bytes, receiver.received_bytes);
    assert!(sender.finished_at_ns >= receiver.finished_at_ns && receiver.finished_at_ns.is_some());
    assert!(sender.sent_segs > 0);
    assert_eq!(sender.samples.len(), 1);
    assert_eq!(sender.responses.is_empty(), pattern == Pattern::Bulk);
}

#[test]
fn a_bulk_flow_ends_when_all_has_come() {
    play_through(Pattern::Bulk, ENOUGH_BYTES);
}

#[test]
fn a_ping_pong_ends_with_its_last_echo() {
    for _ in 0..100 {
        play_through(Pattern::PingPong, 100);
    }
}

#[test]
fn an_idle_flow_ends_without_a_byte() {
    let (mut sender, mut receiver) = connected(Pattern::Idle);
    let mut scratch = vec![0; CHUNK_BYTES];
    sender.join();
    sender.send(&mut scratch).unwrap();
    assert_eq!(sender.sent_bytes(), 0);
    sender.leave().unwrap();
    while receiver.receive(&mut scratch).unwrap() {}
    assert_eq!(receiver.received_bytes(), 0);
}

#[test]
fn transfers_come_one_after_another_over_connections_of_their_own() {
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = socket::listen(anywhere, "reno").unwrap();
    let to = listener.local_addr().unwrap();
    let (bytes, count) = (300_000.try_into().unwrap(), 3.try_into().unwrap());
    let transfers = Transfers { bytes, count, every_ms: None, until: Until::Acknowledged };
    let mut sender = TransferSender::new(transfers, 0, SEED);
    let mut receiver: Option<Receiver> = None;
    let mut scratch = vec![0; CHUNK_BYTES];
    while !sender.was_last() {
        sender.begin();
        let socket = socket::tcp(anywhere, "reno").unwrap();
        socket.connect(&to).unwrap();
        socket.set_nonblocking(true).unwrap();
        sender.connected(socket).unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let receiver = match &mut receiver {
            None => {
                let pattern = Pattern::Transfers(transfers);
                receiver.insert(Receiver::new(socket, 0, SEED, pattern).unwrap())
            }
            Some(receiver) => {
                receiver.next_transfer(socket).unwrap();
                receiver
            }
        };
        assert!(!sender.advance(&mut scratch).unwrap(), "the receiver has read nothing");
        while receiver.receive(&mut scratch).unwrap() {
            assert!(!sender.advance(&mut scratch).unwrap(), "the receiver has not ended");
        }
        receiver.answer_end().unwrap();
        while !sender.advance(&mut scratch).unwrap() {}
    }
    let half = sender.into_half().unwrap();
    let (begun, acknowledged) = (half.transfers, half.transfers_acknowledged_at_ns);
    let ended = receiver.unwrap().into_half();
    assert_eq!((begun.len(), ended.transfers_ended_at_ns.len()), (3, 3));
    assert!(ended.payload_ok);
    assert_eq!(ended.received_bytes, 900_000);
    assert_eq!(acknowledged.len(), 3);
    assert!(begun.iter().zip(&acknowledged).all(|(begun, at_ns)| begun.at_ns < *at_ns));
    let ended = Transfer::ended(&begun, &ended.transfers_ended_at_ns);
    assert!(ended.windows(2).all(|pair| {
        pair[0].began_at_ns + pair[0].took_ns <= pair[1].began_at_ns && pair[0].took_ns > 0
    }));
}
