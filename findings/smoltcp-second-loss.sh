#!/bin/sh
# smoltcp 0.14.0 as a sender with Reno and SACK: of two segments that a window loses, the second waits for a
# timeout of a second, on a path of 20 ms.
#
# Expected: the receiver reports by SACK what has arrived behind each hole, and the first retransmission brings
# a partial ACK. Either shows the second loss (RFC 6675, RFC 6582), so that it is sent again within two round
# trips. Seen: smoltcp permits SACK in its SYN, sends reports as a receiver and parses those that it gets, but no
# sender of it reads them, and a partial ACK needs three duplicates of its own. The second segment is sent
# again when the retransmission timer expires, which has a minimum of 1 s.
#
# Both ends are smoltcp, in virtual time. Segments 80 and 83 are lost, which leave at the same moment.
#
# Exit code 0: as seen with that version; 1: it behaves otherwise.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/src"
cat >"$work/Cargo.toml" <<'TOML'
[package]
name = "second-loss"
version = "0.0.0"
edition = "2021"

[dependencies.smoltcp]
version = "=0.14.0"
default-features = false
features = ["std", "medium-ip", "proto-ipv4", "socket-tcp", "socket-tcp-reno"]
TOML
cat >"$work/src/main.rs" <<'RUST'
use std::collections::VecDeque;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, Ipv4Packet, TcpPacket, TcpSeqNumber};

const ONE_WAY: Duration = Duration::from_millis(10);
const FILE_BYTES: usize = 300_000;
const LOST: [usize; 2] = [80, 83];

#[derive(Default)]
struct Card {
    arrived: VecDeque<Vec<u8>>,
    left: Vec<Vec<u8>>,
}

struct Received(Vec<u8>);
struct Leaving<'a>(&'a mut Vec<Vec<u8>>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, write: F) -> R {
        let mut packet = vec![0; bytes];
        let result = write(&mut packet);
        self.0.push(packet);
        result
    }
}

impl Device for Card {
    type RxToken<'a> = Received;
    type TxToken<'a> = Leaving<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, Leaving<'_>)> {
        Some((Received(self.arrived.pop_front()?), Leaving(&mut self.left)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leaving<'_>> {
        Some(Leaving(&mut self.left))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1500;
        capabilities
    }
}

struct Host {
    card: Card,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
}

impl Host {
    fn new(last: u8) -> Self {
        let mut card = Card::default();
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut card, Instant::ZERO);
        let address = IpCidr::new(IpAddress::v4(10, 0, 0, last), 24);
        interface.update_ip_addrs(|all| all.push(address).expect("room for an address"));
        let buffer = || SocketBuffer::new(vec![0; 60_000]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_congestion_control(CongestionControl::Reno);
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        Self { card, interface, sockets, socket }
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    fn poll(&mut self, now: Instant) -> Vec<Vec<u8>> {
        self.interface.poll(now, &mut self.card, &mut self.sockets);
        std::mem::take(&mut self.card.left)
    }
}

fn tcp(packet: &[u8]) -> TcpPacket<&[u8]> {
    let header_bytes = Ipv4Packet::new_checked(packet).expect("IPv4").header_len();
    TcpPacket::new_checked(&packet[header_bytes.into()..]).expect("TCP")
}

fn main() {
    let (mut sender, mut receiver) = (Host::new(1), Host::new(2));
    receiver.socket().listen(80).expect("a closed socket");
    let to = (IpAddress::v4(10, 0, 0, 2), 80);
    let socket = sender.sockets.get_mut::<Socket>(sender.socket);
    socket.connect(sender.interface.context(), to, 40000).expect("a closed socket");

    let (mut to_receiver, mut to_sender) = (VecDeque::new(), VecDeque::new());
    let (mut written, mut read, mut segments) = (0, 0, 0);
    let mut highest: Option<TcpSeqNumber> = None;
    let mut lost: Vec<(TcpSeqNumber, Instant, bool)> = Vec::new();
    for tick in 0..100_000 {
        let now = Instant::from_micros(tick * 100);
        while written < FILE_BYTES && sender.socket().can_send() {
            written += sender.socket().send_slice(&vec![0; FILE_BYTES - written]).expect("open");
        }
        for packet in sender.poll(now) {
            let segment = tcp(&packet);
            let (first, bytes) = (segment.seq_number(), segment.payload().len());
            if bytes > 0 && highest.is_none_or(|highest| first >= highest) {
                highest = Some(first + bytes);
                segments += 1;
                if LOST.contains(&segments) {
                    lost.push((first, now, false));
                    continue;
                }
            } else if let Some(place) = lost.iter().position(|lost| bytes > 0 && lost.0 == first) {
                let after = (now - lost[place].1).total_millis();
                let reported = if lost[place].2 { "what follows it had been reported" } else { "" };
                println!("segment {}: sent again after {after} ms; {reported}", LOST[place]);
            }
            to_receiver.push_back((now + ONE_WAY, packet));
        }
        to_sender.extend(receiver.poll(now).into_iter().map(|packet| (now + ONE_WAY, packet)));
        while to_receiver.front().is_some_and(|(at, _)| *at <= now) {
            receiver.card.arrived.extend(to_receiver.pop_front().map(|(_, packet)| packet));
        }
        while to_sender.front().is_some_and(|(at, _)| *at <= now) {
            let (_, packet) = to_sender.pop_front().expect("it is there");
            let blocks = tcp(&packet).selective_ack_ranges().unwrap_or_default();
            for (_, right) in blocks.into_iter().flatten() {
                lost.iter_mut().for_each(|lost| lost.2 |= TcpSeqNumber(right as i32) > lost.0);
            }
            sender.card.arrived.push_back(packet);
        }
        while receiver.socket().can_recv() {
            read += receiver.socket().recv(|data| (data.len(), data.len())).expect("open");
        }
        if read == FILE_BYTES {
            return;
        }
    }
    panic!("{read} of {FILE_BYTES} bytes arrived in 10 s");
}
RUST
cargo build --quiet --release --manifest-path "$work/Cargo.toml" --target-dir "$work/target"
seen=$("$work/target/release/second-loss")
echo "smoltcp $(sed -n '/^name = "smoltcp"$/ { n; s/^version = "\(.*\)"$/\1/p }' "$work/Cargo.lock"): segments" \
	'80 and 83 of a transfer are lost at once, on a path with a round trip of 20 ms'
echo "$seen"
[ "$seen" = 'segment 80: sent again after 20 ms; what follows it had been reported
segment 83: sent again after 1040 ms; what follows it had been reported' ] || {
	echo 'smoltcp-second-loss: this is not what version 0.14.0 did' >&2
	exit 1
}
