//! What happens at a port by an input: frames, time that passes, other treatments.

use vcc_engine::Params;
use vcc_frames::{Headers, Packet, icmp};

use super::connection::Connection;
use crate::input::Input;
use crate::params::params;

const CONNECTIONS: u16 = 4;
const MS_US: u64 = 1000;

/// A frame on its way.
#[derive(Clone)]
pub struct Sent {
    pub from_guest: bool,
    pub bytes: Vec<u8>,
    pub gso_size: u16,
    /// Of a TCP segment that is right: where its parts are.
    pub at: Option<Headers>,
}

pub enum Step {
    Frame(Sent),
    Wait {
        us: u64,
    },
    Treat(Params),
    /// By rules, which connections have by turns.
    Rule(Vec<Params>),
    /// The guest's receive ring has so many free buffers.
    Room {
        free_segs: u32,
    },
}

/// The steps of an input.
pub struct Script<'a> {
    input: Input<'a>,
    connections: Vec<Connection>,
    /// Steps that follow from the last choice, in reverse order.
    next: Vec<Step>,
    /// The last frame of the guest, of which a router may complain.
    last: Option<Sent>,
    pub first: Params,
}

impl<'a> Script<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut input = Input::new(bytes);
        let first = params(&mut input, 0);
        let connections = (0..CONNECTIONS).map(Connection::new).collect();
        Script { input, connections, next: Vec::new(), last: None, first }
    }

    fn choose(&mut self) {
        let input = &mut self.input;
        let what = input.u8();
        let which = usize::from(what >> 6);
        let from_guest = what & 0x20 != 0;
        let connection = &mut self.connections[which];
        match what & 0x1f {
            0 | 1 => {
                let segments = connection.handshake(input);
                self.send_all(segments);
            }
            2..6 => self.transfer(which),
            6..14 => {
                let packet = connection.any(input, from_guest);
                connection.sent(from_guest, &packet);
                self.send(from_guest, &packet);
            }
            14..18 => {
                // A stray one: the connection continues from where it was.
                let packet = connection.any(input, from_guest);
                self.send(from_guest, &packet);
            }
            18..21 => {
                let packet = connection.any(input, from_guest);
                self.send_harmed(from_guest, &packet);
            }
            21 => {
                let bytes = (0..input.u8()).map(|_| input.u8()).collect();
                self.next.push(Step::Frame(Sent { from_guest, bytes, gso_size: 0, at: None }));
            }
            22 => self.complain(),
            23 => self.next.push(Step::Treat(params(input, 0))),
            24 => {
                let rules = (0..=input.below(3)).map(|_| params(input, 0)).collect();
                self.next.push(Step::Rule(rules));
            }
            25 | 26 => {
                let free_segs = input.pick(&[256, 0, 1, 100, 128, 255]);
                self.next.push(Step::Room { free_segs });
            }
            _ => {
                let us =
                    input.pick(&[MS_US, 1, 20 * MS_US, 250 * MS_US, 3000 * MS_US, 11_000 * MS_US]);
                self.next.push(Step::Wait { us });
            }
        }
    }

    /// Honest data in one direction, and what acknowledges it.
    fn transfer(&mut self, which: usize) {
        let how = self.input.u8();
        let from_guest = how & 1 == 0;
        let mut segments = Vec::new();
        for _ in 0..=how >> 1 & 7 {
            let connection = &mut self.connections[which];
            let mut data = connection.packet(from_guest);
            data.payload = vcc_frames::payload(if how & 0x10 == 0 { 1448 } else { 5000 });
            data.traffic_class = if how & 0x20 == 0 { 0 } else { 3 };
            connection.sent(from_guest, &data);
            segments.push((from_guest, data));
        }
        let connection = &mut self.connections[which];
        let ack = connection.packet(!from_guest);
        connection.sent(!from_guest, &ack);
        segments.push((!from_guest, ack));
        self.send_all(segments);
        if how & 0x40 != 0 {
            self.next.insert(0, Step::Wait { us: MS_US });
        }
    }

    fn send_all(&mut self, segments: Vec<(bool, Packet)>) {
        for (from_guest, packet) in segments.iter().rev() {
            self.send(*from_guest, packet);
        }
    }

    fn send(&mut self, from_guest: bool, packet: &Packet) {
        // Two tags are not read, so nothing is changed behind them.
        let at = Some(packet.headers()).filter(|_| packet.tags.len() < 2);
        let gso_size = if packet.payload.len() > 1448 { 1448 } else { 0 };
        let sent = Sent { from_guest, bytes: packet.frame(), gso_size, at };
        if from_guest {
            self.last = Some(sent.clone());
        }
        self.next.push(Step::Frame(sent));
    }

    /// With other bytes, in the headers or elsewhere, or another length.
    fn send_harmed(&mut self, from_guest: bool, packet: &Packet) {
        let mut bytes = packet.frame();
        for _ in 0..=self.input.below(3) {
            let at = usize::from(self.input.u8()) % bytes.len();
            bytes[at] = self.input.u8();
        }
        match self.input.u8() {
            0 => bytes.truncate(usize::from(self.input.u8())),
            1 => bytes.extend(vec![0x5a; self.input.u8().into()]),
            _ => {}
        }
        let gso_size = self.input.pick(&[0, 1448, 1, u16::MAX]);
        self.next.push(Step::Frame(Sent { from_guest, bytes, gso_size, at: None }));
    }

    /// A router could not forward the guest's last segment (RFC 1191).
    fn complain(&mut self) {
        let mtu_bytes = u32::from(self.input.u16());
        let quoted_bytes = self.input.pick(&[8, 20, 64, 0]);
        let Some(Sent { bytes, at: Some(at), .. }) = &self.last else { return };
        let bytes = icmp::too_big(bytes, at, mtu_bytes, quoted_bytes);
        self.next.push(Step::Frame(Sent { from_guest: false, bytes, gso_size: 0, at: None }));
    }
}

impl Iterator for Script<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.next.pop() {
                return Some(step);
            }
            if self.input.is_empty() {
                return None;
            }
            self.choose();
        }
    }
}
