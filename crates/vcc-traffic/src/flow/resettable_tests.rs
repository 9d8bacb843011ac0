//! Transfers whose connections are reset, over this machine's loopback.

use super::*;
use crate::pattern::{Transfers, Until};
use crate::socket;
use socket2::SockAddr;
use std::io::Write;
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

const SEED: u64 = 3;
const BYTES: u64 = 300_000;

fn transfers() -> Transfers {
    let (bytes, count) = (BYTES.try_into().unwrap(), 3.try_into().unwrap());
    Transfers { bytes, count, every_ms: None, until: Until::Ended }
}

struct Ends {
    listener: Socket,
    to: SockAddr,
    scratch: Vec<u8>,
}

impl Ends {
    fn new() -> Self {
        let listener = socket::listen(SocketAddr::from(([127, 0, 0, 1], 0)), "reno").unwrap();
        let to = listener.local_addr().unwrap();
        Self { listener, to, scratch: vec![0; CHUNK_BYTES] }
    }

    fn connected(&self) -> [Socket; 2] {
        let sender = socket::tcp(self.to.as_socket().unwrap(), "reno").unwrap();
        sender.connect(&self.to).unwrap();
        let (receiver, _) = self.listener.accept().unwrap();
        for socket in [&sender, &receiver] {
            socket.set_nonblocking(true).unwrap();
        }
        [sender, receiver]
    }
}

fn reset(socket: Socket) {
    socket.set_linger(Some(Duration::ZERO)).unwrap();
}

/// The receiver learns of it when the next transfer is over.
#[test]
fn a_reset_ends_a_transfer_and_the_next_one_begins() {
    let mut ends = Ends::new();
    let mut sender = TransferSender::new(transfers(), 0, SEED);
    let mut receiver = ResettableReceiver::new(0, SEED, transfers());
    let mut unheard = None;
    for number in 0..3 {
        sender.begin();
        let [sending, receiving] = ends.connected();
        sender.connected(sending).unwrap();
        if number == 1 {
            assert!(!sender.advance(&mut ends.scratch).unwrap());
            reset(receiving);
            let [sending, receiving] = ends.connected();
            receiver.accepted(receiving, number).unwrap();
            unheard = Some(sending);
        } else {
            receiver.accepted(receiving, number).unwrap();
        }
        while !sender.advance(&mut ends.scratch).unwrap() {
            receiver.receive(&mut ends.scratch).unwrap();
        }
    }
    assert!(sender.was_last());
    reset(unheard.expect("a second transfer"));
    receiver.receive(&mut ends.scratch).unwrap();
    let (sender, receiver) = (sender.into_half().unwrap(), receiver.into_half());
    for ends in [&sender.transfer_ends, &receiver.transfer_ends] {
        assert!(ends.iter().map(|(&number, end)| (number, end.is_whole)).eq([
            (0, true),
            (1, false),
            (2, true)
        ]));
    }
    assert!(receiver.payload_ok);
    assert_eq!(receiver.transfers_ended_at_ns.len(), 2);
    assert_eq!(receiver.received_bytes, 2 * BYTES);
}

#[test]
fn no_transfer_ends_in_order_before_its_last_byte() {
    let mut ends = Ends::new();
    let mut receiver = ResettableReceiver::new(0, SEED, transfers());
    let [mut sending, receiving] = ends.connected();
    receiver.accepted(receiving, 2).unwrap();
    sending.write_all(Stream::new(SEED, 0).bytes(2 * BYTES, 1000)).unwrap();
    receiver.receive(&mut ends.scratch).unwrap();
    sending.shutdown(Shutdown::Write).unwrap();
    let error = receiver.receive(&mut ends.scratch).unwrap_err().to_string();
    assert_eq!(error, "flow 0: transfer 2 ended in order after 1000 bytes");
    assert!(receiver.into_half().payload_ok);
}

#[test]
fn bytes_of_another_transfer_are_wrong() {
    let mut ends = Ends::new();
    let mut receiver = ResettableReceiver::new(0, SEED, transfers());
    let [mut sending, receiving] = ends.connected();
    receiver.accepted(receiving, 1).unwrap();
    sending.write_all(Stream::new(SEED, 0).bytes(0, 1000)).unwrap();
    receiver.receive(&mut ends.scratch).unwrap();
    assert!(!receiver.into_half().payload_ok);
}
