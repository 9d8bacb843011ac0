//! A connection, as far as frames of it are written: both ends' next sequence numbers.

use std::net::SocketAddr;

use vcc_frames::wire::*;
use vcc_frames::{MACS, Packet, options};

use crate::input::Input;

/// One end of a connection.
#[derive(Clone, Copy, Default)]
struct End {
    iss: u32,
    next: u32,
    /// What the other end has last acknowledged.
    una: u32,
}

pub struct Connection {
    guest: SocketAddr,
    peer: SocketAddr,
    vlan: Option<u16>,
    /// The guest's, the peer's.
    ends: [End; 2],
    timestamps: bool,
    sack: bool,
    clock: u32,
}

const MSS_BYTES: u16 = 1448;

impl Connection {
    pub fn new(number: u16) -> Self {
        let (guest, peer) = if number & 1 == 0 {
            ("10.0.0.1".parse(), "10.0.0.2".parse())
        } else {
            ("fd00::1".parse(), "fd00::2".parse())
        };
        let [guest, peer] = [guest, peer].map(|ip| ip.expect("an address"));
        let end = |iss: u32| End { iss, next: iss, una: iss };
        Connection {
            guest: SocketAddr::new(guest, 40_000 + number),
            peer: SocketAddr::new(peer, 80),
            vlan: (number & 2 != 0).then_some(7),
            ends: [end(0xffff_f000), end(0x7fff_ff00)],
            timestamps: false,
            sack: false,
            clock: 1,
        }
    }

    /// The next segment of an end: an ACK of all that the other one has sent.
    pub fn packet(&self, from_guest: bool) -> Packet {
        let [own, other] = self.both(from_guest);
        let mut packet = match from_guest {
            true => Packet::new(self.guest, self.peer),
            false => Packet { macs: [MACS[1], MACS[0]], ..Packet::new(self.peer, self.guest) },
        };
        (packet.seq, packet.ack, packet.window) = (own.next, other.next, 500);
        packet.tags.extend(self.vlan.map(|vlan| (ETHERTYPE_VLAN, vlan)));
        if self.timestamps {
            packet.options = options::join(&[options::timestamps(self.clock, self.clock)]);
        }
        packet
    }

    fn both(&self, from_guest: bool) -> [End; 2] {
        let [guest, peer] = self.ends;
        if from_guest { [guest, peer] } else { [peer, guest] }
    }

    /// Counts what a segment occupies.
    pub fn sent(&mut self, from_guest: bool, packet: &Packet) {
        self.clock = self.clock.wrapping_add(1);
        let flags = u32::from(packet.flags & SYN != 0) + u32::from(packet.flags & FIN != 0);
        let end = packet.seq.wrapping_add(packet.payload.len() as u32).wrapping_add(flags);
        let [own, other] = match &mut self.ends {
            [guest, peer] if from_guest => [guest, peer],
            [guest, peer] => [peer, guest],
        };
        if end.wrapping_sub(own.next) as i32 > 0 {
            own.next = end;
        }
        if packet.flags & ACK != 0 {
            other.una = packet.ack;
        }
    }

    /// The three segments of a handshake, with the end that sends each.
    pub fn handshake(&mut self, input: &mut Input) -> Vec<(bool, Packet)> {
        let (how, offers) = (input.u8(), input.u8());
        let guest_opens = how & 1 == 0;
        (self.timestamps, self.sack) = (offers & 1 != 0, offers & 2 != 0);
        for (end, iss) in self.ends.iter_mut().zip([input.pick(&ISS), input.pick(&ISS)]) {
            *end = End { iss, next: iss, una: iss };
        }
        let mut both = options::join(&[
            options::mss(input.pick(&[1460, 536, 9000, 100, 1])),
            if offers & 4 == 0 { options::wscale(input.pick(&[7, 0, 10, 14])) } else { Vec::new() },
            if self.sack { options::sack_permitted() } else { Vec::new() },
            if self.timestamps { options::timestamps(1, 0) } else { Vec::new() },
        ]);
        if offers & 8 != 0 {
            // MP_CAPABLE.
            both.extend([OPTION_MPTCP, 4, 1, 0]);
        }
        let mut syn =
            Packet { ack: 0, window: 64240, options: both.clone(), ..self.packet(guest_opens) };
        syn.flags = SYN | [0, ECE | CWR, AE | ECE | CWR, 0][usize::from(how >> 1 & 3)];
        let hello = |packet: &mut Packet, what| packet.options.extend(options::hello(what));
        if how & 0x20 != 0 && !guest_opens {
            hello(&mut syn, HELLO_OFFER);
        }
        self.sent(guest_opens, &syn);
        let mut answer = Packet { window: 64240, options: both, ..self.packet(!guest_opens) };
        answer.flags = SYN | ACK | [ECE, 0, AE | CWR, ECE | CWR][usize::from(how >> 3 & 3)];
        if how & 0x20 != 0 && guest_opens {
            hello(&mut answer, HELLO_ACCEPT);
        }
        self.sent(!guest_opens, &answer);
        vec![(guest_opens, syn), (!guest_opens, answer), (guest_opens, self.packet(guest_opens))]
    }

    /// A segment with numbers near to the connection's or far from them.
    pub fn any(&self, input: &mut Input, from_guest: bool) -> Packet {
        let mut packet = self.packet(from_guest);
        let [own, other] = self.both(from_guest);
        packet.seq = near(input, own);
        packet.ack = near(input, other);
        packet.flags = match input.u8() {
            kind @ 0..200 => {
                ACK | [0, PSH, ECE, CWR, FIN, ACK, ECE | CWR, ACK][usize::from(kind & 7)]
            }
            kind @ 200..220 => RST | if kind & 1 == 0 { ACK } else { 0 },
            _ => input.u16() & ALL_FLAGS,
        };
        packet.window = match input.u8() {
            0 => 500,
            other => u16::from(other) << 8 | u16::from(other),
        };
        let shape = input.u8();
        packet.traffic_class = [0, ECT_0, CE, ECT_1][usize::from(shape & 3)];
        let bytes = match shape >> 2 & 7 {
            0 | 1 => 0,
            2 => usize::from(MSS_BYTES),
            3 => 1,
            4 => 3 * usize::from(MSS_BYTES),
            _ => usize::from(input.u8()) << 2,
        };
        packet.payload = vcc_frames::payload(bytes);
        if shape & 0x20 != 0 {
            self.options(input, &mut packet);
        }
        if shape & 0x40 != 0 {
            headers(input, &mut packet);
        }
        packet
    }

    fn options(&self, input: &mut Input, packet: &mut Packet) {
        let counters = [0, 1, 1448, 100_000, COUNTER_MASK];
        let option = match input.below(8) {
            0 => options::pack(input.pick(&counters), input.pick(&counters)),
            1 => options::fack(input.pick(&counters), input.pick(&counters)),
            2 => options::hello(input.u8()),
            3 | 4 => {
                let left = packet.ack.wrapping_add(u32::from(input.u8()) << 6);
                options::sack(&[(left, left.wrapping_add(u32::from(MSS_BYTES)))])
            }
            5 => vec![OPTION_MPTCP, 4, input.u8(), 0],
            // TCP MD5 (RFC 2385), with its length or not.
            6 => [vec![19, input.pick(&[18, 18, 4])], vec![7; 16]].concat(),
            _ => (0..input.below(12)).map(|_| input.u8()).collect(),
        };
        let all = options::join(&[packet.options.clone(), option]);
        if all.len() <= 40 {
            packet.options = all;
        }
    }
}

const ISS: [u32; 4] = [0xffff_f000, 0, 0x7fff_ff00, 0x1234_5678];

fn near(input: &mut Input, end: End) -> u32 {
    let place = input.u8();
    let from = [end.next, end.next, end.una, end.iss][usize::from(place & 3)];
    let offset = match place >> 2 & 7 {
        0 | 1 => 0,
        2 => 1,
        3 => MSS_BYTES.into(),
        4 => u32::from(input.u8()) * u32::from(MSS_BYTES),
        5 => u32::from(input.u16()),
        _ => input.u32(),
    };
    from.wrapping_add(if place & 0x20 == 0 { offset } else { offset.wrapping_neg() })
}

/// Headers before TCP, and padding behind it.
fn headers(input: &mut Input, packet: &mut Packet) {
    let what = input.u8();
    if what & 1 != 0 {
        packet.padding = vec![0xa5; usize::from(input.below(32))];
    }
    if what & 2 != 0 {
        packet.ip_options = options::nops(4 * usize::from(input.below(11)));
    }
    if what & 4 != 0 {
        let units = input.below(4);
        let rest = [vec![units, 1, 4 + 8 * units], vec![0; 4 + 8 * usize::from(units)]].concat();
        let kind = input.pick(&[PROTOCOL_DESTINATION, PROTOCOL_HOP_BY_HOP, PROTOCOL_ROUTING]);
        packet.extensions = vec![(kind, rest)];
    }
    if what & 8 != 0 {
        packet.tags.push((input.pick(&[ETHERTYPE_VLAN, ETHERTYPE_QINQ]), input.u16()));
    }
    packet.traffic_class |= what & 0xf0;
}
