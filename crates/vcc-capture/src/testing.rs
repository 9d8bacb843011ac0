//! Captures for tests: a connection that loses a segment, and writers of both formats.

use std::net::SocketAddr;

use vcc_frames::wire::{ACK, FIN, PSH, SYN};
use vcc_frames::{Packet, options, payload};

/// The MSS of both ends.
pub const MSS_BYTES: usize = 1000;
/// When the capture begins: a time whose ns a u32 of us does not hold.
pub const EPOCH_NS: u64 = 1_700_000_000_123_456_000;
const MS: u64 = 1_000_000;
/// Between the guest and the peer.
const RTT_NS: u64 = 20 * MS;
/// The segments of each of the two flights.
const FLIGHT: u32 = 10;
/// The segment of the second flight that is lost.
const LOST: u32 = 3;

/// A packet with its time.
pub type Timed<T> = (u64, T);

/// A connection that the guest opens, captured beside the guest: 20 segments of which one is lost and sent
/// again, and both FINs. Neither end has ECN, SACK or timestamps.
pub fn talk(guest: SocketAddr, peer: SocketAddr) -> Vec<Timed<Packet>> {
    let mut talk = Talk { guest, peer, now_ns: EPOCH_NS, packets: Vec::new() };
    let mss = options::join(&[options::mss(MSS_BYTES as u16)]);
    talk.guest(0, |it| Packet { flags: SYN, options: mss.clone(), ack: 0, ..it });
    talk.now_ns += RTT_NS;
    talk.peer(0, |it| Packet { flags: SYN | ACK, options: mss.clone(), seq: ISS, ..it });
    talk.guest(1, |it| it);
    for segment in 0..FLIGHT {
        talk.data(segment);
    }
    talk.now_ns += RTT_NS;
    for segment in 0..FLIGHT {
        talk.peer(after(segment), |it| it);
    }
    for segment in FLIGHT..2 * FLIGHT {
        talk.data(segment);
    }
    talk.now_ns += RTT_NS;
    let last = FLIGHT + LOST;
    for segment in FLIGHT..2 * FLIGHT {
        talk.peer(after(segment).min(after(last - 1)), |it| it);
    }
    talk.data(last);
    talk.now_ns += RTT_NS;
    let end = after(2 * FLIGHT - 1);
    talk.peer(end, |it| it);
    talk.guest(end, |it| Packet { flags: FIN | ACK, ..it });
    talk.now_ns += RTT_NS;
    talk.peer(end + 1, |it| Packet { flags: FIN | ACK, ..it });
    talk.guest(end + 1, |it| Packet { ack: ISS + 2, ..it });
    talk.packets
}

/// The peer's first sequence number.
const ISS: u32 = 5000;

/// The sequence number behind a segment of the guest, whose first is 0.
fn after(segment: u32) -> u32 {
    1 + (segment + 1) * MSS_BYTES as u32
}

struct Talk {
    guest: SocketAddr,
    peer: SocketAddr,
    now_ns: u64,
    packets: Vec<Timed<Packet>>,
}

impl Talk {
    fn push(&mut self, packet: Packet) {
        self.packets.push((self.now_ns, packet));
        self.now_ns += 10_000;
    }

    fn guest(&mut self, seq: u32, change: impl FnOnce(Packet) -> Packet) {
        let packet = Packet::new(self.guest, self.peer);
        self.push(change(Packet { seq, ack: ISS + 1, ..packet }));
    }

    fn peer(&mut self, ack: u32, change: impl FnOnce(Packet) -> Packet) {
        let packet = Packet::new(self.peer, self.guest);
        let ack = ack.max(1);
        self.push(change(Packet { seq: ISS + 1, ack, window: 60_000, ..packet }));
    }

    fn data(&mut self, segment: u32) {
        let data = |it| Packet { flags: ACK | PSH, payload: payload(MSS_BYTES), ..it };
        self.guest(after(segment) - MSS_BYTES as u32, data);
    }
}

/// The frames of packets.
pub fn frames(packets: &[Timed<Packet>]) -> Vec<Timed<Vec<u8>>> {
    packets.iter().map(|(time_ns, packet)| (*time_ns, packet.frame())).collect()
}

/// How numbers and times are written.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub is_big_endian: bool,
    pub is_ns: bool,
    /// Bytes that are kept of each packet.
    pub kept_bytes: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { is_big_endian: false, is_ns: false, kept_bytes: 262_144 }
    }
}

impl Style {
    fn word(self, number: u32) -> [u8; 4] {
        if self.is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn half(self, number: u16) -> [u8; 2] {
        if self.is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn words(self, numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| self.word(*number)).collect()
    }
}

/// A file in the format pcap.
pub fn pcap(style: Style, link: u32, packets: &[Timed<Vec<u8>>]) -> Vec<u8> {
    let magic = if style.is_ns { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = style.word(magic).to_vec();
    file.extend([style.half(2), style.half(4)].concat());
    file.extend(style.words(&[0, 0, style.kept_bytes as u32, link]));
    for (time_ns, packet) in packets {
        let unit_ns = if style.is_ns { 1 } else { 1000 };
        let (s, rest_ns) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
        let kept = &packet[..packet.len().min(style.kept_bytes)];
        let rest = (rest_ns / unit_ns) as u32;
        file.extend(style.words(&[s as u32, rest, kept.len() as u32, packet.len() as u32]));
        file.extend(kept);
    }
    file
}

/// A file in the format pcapng, block by block.
pub struct Pcapng {
    pub style: Style,
    pub file: Vec<u8>,
}

impl Pcapng {
    /// With a section.
    pub fn new(style: Style) -> Self {
        let mut file = Self { style, file: Vec::new() };
        file.section(style);
        file
    }

    pub fn section(&mut self, style: Style) {
        self.style = style;
        let version = [style.half(1), style.half(0)].concat();
        let body = [&style.word(0x1a2b_3c4d)[..], &version, &[0xff; 8]].concat();
        self.block(0x0a0d_0d0a, &body);
    }

    pub fn block(&mut self, kind: u32, body: &[u8]) {
        let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
        let length = self.style.word((12 + body.len() + padding.len()) as u32);
        let words = [&self.style.word(kind)[..], &length, body, &padding, &length];
        self.file.extend(words.concat());
    }

    /// Its options are if_name, and if_tsresol and if_tsoffset where they are not the usual ones.
    pub fn interface(&mut self, link: u16, name: &str, resolution: u8, offset_s: i64) {
        let style = self.style;
        let option = |code: u16, value: &[u8]| {
            let length = style.half(value.len() as u16);
            let padding = vec![0; value.len().next_multiple_of(4) - value.len()];
            [&style.half(code)[..], &length, value, &padding].concat()
        };
        let offset =
            if style.is_big_endian { offset_s.to_be_bytes() } else { offset_s.to_le_bytes() };
        let mut body = [style.half(link), style.half(0)].concat();
        body.extend(style.word(style.kept_bytes as u32));
        if !name.is_empty() {
            body.extend(option(2, name.as_bytes()));
        }
        if resolution != 6 {
            body.extend(option(9, &[resolution]));
        }
        if offset_s != 0 {
            body.extend(option(14, &offset));
        }
        body.extend(option(0, &[]));
        self.block(1, &body);
    }

    /// An enhanced packet block; `units` is the time.
    pub fn packet(&mut self, interface: u32, units: u64, packet: &[u8]) {
        let kept = &packet[..packet.len().min(self.style.kept_bytes)];
        let (high, low) = ((units >> 32) as u32, units as u32);
        let lengths = [kept.len() as u32, packet.len() as u32];
        let mut body = self.style.words(&[interface, high, low, lengths[0], lengths[1]]);
        body.extend(kept);
        self.block(6, &body);
    }
}
