//! What guests and peers do at random.

mod peer;

use vcc_domain::{BufferSpec, Frame};
use vcc_engine::{BufferPolicy, Params, sys};
use vcc_frames::Packet;
use vcc_frames::wire::*;

use crate::BESIDE_A_FRAME_BYTES;
use crate::common::rng::Rng;
use crate::common::rules::by_guest_port;
use crate::common::watch::distance;
use crate::ends::{Ends, Guest, MSS_BYTES, RING_SEGS};

const CONNECTIONS: u16 = 3;
/// As far as a guest's window reaches.
const GUEST_WINDOW_BYTES: u32 = 60_000 << 7;

pub struct Connection {
    ends: Ends,
    /// Bytes that the guest has sent, and the peer.
    sent: u32,
    peer_sent: u32,
    finished: bool,
    peer_finished: bool,
    pub reset: bool,
    window_bytes: u32,
}

pub struct Run {
    pub rng: Rng,
    pub guest: Guest,
    pub connections: Vec<Connection>,
    /// Does the guest send beyond the window that it was shown?
    ignores_window: bool,
    /// Do segments have any size? Else no single one exceeds the MSS.
    pub any_sizes: bool,
    size_bytes: u32,
    largest_frame_bytes: u32,
}

impl Run {
    /// `rules`: the connections have them by turns. Without any, `params` treat all.
    pub fn new(
        seed: u64,
        params: fn(&mut Rng) -> Params,
        rules: fn(&mut Rng, Params) -> Vec<Params>,
    ) -> Self {
        let mut rng = Rng::new(seed);
        let size_bytes = rng.pick(&[20_000, 100_000, 4 << 20]);
        let policy = rng.pick(&[BufferPolicy::None, BufferPolicy::Fair, BufferPolicy::Prioritized]);
        let params = params(&mut rng);
        let mut guest = Guest::with(params, BufferSpec { size_bytes, policy });
        let rules = rules(&mut rng, params);
        if !rules.is_empty() {
            guest.port.set_rules(by_guest_port(&rules));
        }
        guest.watch.slack_bytes = MSS_BYTES as i64;
        guest.watch.splits = u32::from(guest.port.params().0.act) == sys::ACT_SPLIT;
        let mut run = Run {
            ignores_window: rng.chance(300),
            guest,
            connections: Vec::new(),
            any_sizes: false,
            size_bytes,
            largest_frame_bytes: 0,
            rng,
        };
        run.guest.set_room(RING_SEGS);
        for number in 0..CONNECTIONS {
            run.connect(number);
        }
        run
    }

    fn connect(&mut self, number: u16) {
        let rng = &mut self.rng;
        let mut ends = Ends::new(number);
        ends.iss = rng.next() as u32;
        ends.irs = rng.next() as u32;
        ends.scales = [7, rng.pick(&[0, 2, 7, 7, 14])];
        ends.stamp = rng.chance(300).then_some(7);
        ends.sack = rng.chance(500);
        let window_bytes = rng.pick(&[0u32, 1_000, 30_000, 65_535]);
        if rng.chance(500) {
            let _ = self.guest.send(&ends.syn());
            let mut answer = ends.syn_ack(window_bytes as u16);
            if self.rng.chance(500) {
                answer.flags |= ECE;
            }
            let _ = self.guest.receive(&answer);
            if self.rng.chance(700) {
                let _ = self.guest.send(&ends.guest_ack(0));
            }
        } else {
            ends.accept(&mut self.guest, window_bytes);
        }
        self.connections.push(Connection {
            ends,
            sent: 0,
            peer_sent: 0,
            finished: false,
            peer_finished: false,
            reset: false,
            window_bytes,
        });
    }

    pub fn step(&mut self) {
        let number = self.rng.range(0, CONNECTIONS.into()) as usize;
        // A closed flow is forgotten soon.
        if self.connections[number].reset || self.connections[number].is_closed() {
            return;
        }
        match self.rng.range(0, 100) {
            0..35 => self.new_data(number),
            35..45 => self.old_data(number),
            45..50 => self.guest_ack(number),
            50..53 => self.stray_from_guest(number),
            53..82 => self.peer_ack(number),
            82..87 => self.peer_data(number),
            87..92 => self.stray_from_peer(number),
            92 => self.close(number),
            93 => self.peer_closes(number),
            94 if self.rng.chance(100) => self.reset(number),
            95 => {
                let free_segs = self.rng.pick(&[0, 1, RING_SEGS / 2 - 1, RING_SEGS]);
                self.guest.set_room(free_segs);
            }
            _ => self.wait(),
        }
        let held_bytes = self.guest.port.held_bytes();
        // A super-segment that was cut has the headers of its segments.
        let cuts = self.largest_frame_bytes / 300 + 1;
        let most_bytes = self.size_bytes + self.largest_frame_bytes + cuts * BESIDE_A_FRAME_BYTES;
        assert!(held_bytes <= most_bytes, "{held_bytes} held");
        let granted_bytes = self.guest.port.granted_bytes();
        assert!(granted_bytes <= self.size_bytes, "{granted_bytes} granted");
    }

    fn wait(&mut self) {
        let ms = match self.rng.range(0, 4) {
            0 => self.rng.range(0, 3),
            1 | 2 => self.rng.range(1, 50),
            _ => self.rng.range(100, 3000),
        };
        self.guest.wait_ms(ms);
    }

    fn send(&mut self, number: usize, offset: u32, bytes: u32, fin: bool) {
        let Connection { ends, peer_sent, .. } = &self.connections[number];
        let mut packet = ends.data(offset, bytes as usize);
        packet.ack = packet.ack.wrapping_add(*peer_sent);
        packet.flags |= if fin { FIN } else { 0 } | self.rng.pick(&[0, 0, PSH, CWR, ECE]);
        self.largest_frame_bytes = self.largest_frame_bytes.max(packet.frame().len() as u32);
        let other_size = if self.any_sizes { 300 } else { MSS_BYTES };
        let gso_size = self.rng.pick(&[MSS_BYTES, MSS_BYTES, other_size]);
        let segments = !self.any_sizes && bytes > MSS_BYTES as u32;
        let _ = match segments || self.rng.chance(500) {
            true => self.guest.send_super(&packet, gso_size),
            false => self.guest.send(&packet),
        };
    }

    fn new_data(&mut self, number: usize) {
        if self.connections[number].finished {
            return;
        }
        let most_bytes = self.rng.pick(&[1, MSS_BYTES, MSS_BYTES, 5_000, 60_000]);
        let bytes = match self.rng.chance(500) {
            true => most_bytes as u32,
            false => self.rng.range(0, most_bytes as u64) as u32 + 1,
        };
        let Connection { ends, sent: offset, .. } = &self.connections[number];
        let offset = *offset;
        let edge = self.guest.port.flow(&ends.key()).map(|flow| flow.right_edge);
        let room_bytes = edge.map(|edge| distance(ends.seq(offset), edge).max(0) as u32);
        let bytes = match room_bytes {
            Some(room_bytes) if !self.ignores_window => bytes.min(room_bytes),
            _ => bytes,
        };
        if bytes == 0 {
            return;
        }
        self.connections[number].sent += bytes;
        // Sometimes the card loses it.
        if !self.rng.chance(20) {
            self.send(number, offset, bytes, false);
        }
    }

    /// A retransmission, perhaps cut otherwise than before.
    fn old_data(&mut self, number: usize) {
        let Connection { ends, sent, finished, .. } = &self.connections[number];
        let (una, sent, finished) = (ends.in_sequence, *sent, *finished);
        let from = match self.rng.chance(700) {
            true => una,
            false => self.rng.range(una.saturating_sub(5000).into(), u64::from(sent) + 1) as u32,
        };
        let bytes = (self.rng.range(0, 4000) as u32).min(sent.saturating_sub(from));
        let fin = finished && from + bytes == sent;
        if bytes > 0 || fin {
            self.send(number, from, bytes, fin);
        }
    }

    fn guest_ack(&mut self, number: usize) {
        let Connection { ends, sent, peer_sent, finished, .. } = &self.connections[number];
        let packet = ends.guest_ack(sent + u32::from(*finished));
        let ack = packet.ack.wrapping_add(*peer_sent);
        let _ = self.guest.send(&Packet { ack, ..packet });
    }

    /// What no sane guest sends.
    fn stray_from_guest(&mut self, number: usize) {
        let offset = self.rng.next() as u32;
        let bytes = self.rng.range(1, 3000) as u32;
        // Beyond what may be held, so that it cannot become a part of the stream.
        let beyond = offset.wrapping_sub(self.connections[number].sent);
        if (1 << 28..3 << 30).contains(&beyond) {
            let packet = self.connections[number].ends.data(offset, bytes as usize);
            let _ = self.guest.send_stray(Frame::full(packet.frame()));
        }
    }

    fn close(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        if !connection.finished {
            connection.finished = true;
            let sent = connection.sent;
            self.send(number, sent, 0, true);
        }
    }

    fn reset(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        connection.reset = true;
        if self.rng.chance(500) {
            let packet = connection.ends.guest_ack(connection.sent);
            let _ = self.guest.send(&Packet { flags: RST | ACK, ..packet });
        } else {
            let packet = connection.ends.peer_ack(connection.ends.in_sequence, 0);
            let seq = packet.seq.wrapping_add(connection.peer_next());
            let _ = self.guest.receive(&Packet { seq, flags: RST | ACK, ..packet });
        }
        connection.ends.take(&mut self.guest);
    }

    /// The peers read all, and the guest's retransmission timers go off: every byte arrives.
    pub fn finish(&mut self) {
        self.guest.set_room(RING_SEGS);
        for Connection { ends, .. } in self.connections.iter().filter(|it| !it.reset) {
            let is_shown = self.guest.watch.has_shown_all(ends.guest, ends.peer);
            assert!(is_shown, "law 18: an ACK has not reached the guest");
        }
        for number in 0..self.connections.len() {
            if self.connections[number].reset {
                continue;
            }
            let mut rounds = 0;
            loop {
                let connection = &mut self.connections[number];
                while connection.ends.take(&mut self.guest) {
                    self.guest.wait_ms(1);
                    connection.acknowledge(&mut self.guest);
                }
                let Connection { ends, sent, finished, .. } = &self.connections[number];
                if ends.in_sequence == *sent && ends.finished == *finished {
                    // The last ACK may have been left to chance.
                    self.connections[number].acknowledge(&mut self.guest);
                    break;
                }
                rounds += 1;
                assert!(rounds < 3000, "stuck at {} of {sent}", ends.in_sequence);
                let (from, sent, finished) = (ends.in_sequence, *sent, *finished);
                let bytes = (sent - from).min(MSS_BYTES as u32);
                self.guest.wait_ms(500);
                self.send(number, from, bytes, finished && from + bytes == sent);
                self.connections[number].ends.take(&mut self.guest);
                self.connections[number].acknowledge(&mut self.guest);
            }
        }
        // What a reset connection held is gone at the latest when the flow is.
        self.guest.wait_ms(30_000);
        let left = self.connections.iter().any(|connection| connection.reset);
        assert!(left || self.guest.port.held_bytes() == 0, "{}", self.guest.port.held_bytes());
    }
}

impl Connection {
    fn is_closed(&self) -> bool {
        self.finished && self.peer_finished
    }

    fn peer_next(&self) -> u32 {
        self.peer_sent + u32::from(self.peer_finished)
    }

    fn acknowledge(&self, guest: &mut Guest) {
        let ack = self.ends.in_sequence + u32::from(self.ends.finished);
        let packet = self.ends.peer_ack(ack, UINT16_MAX);
        let seq = packet.seq.wrapping_add(self.peer_next());
        let _ = guest.receive(&Packet { seq, ..packet });
    }
}

const UINT16_MAX: u32 = u16::MAX as u32;
