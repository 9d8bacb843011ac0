//! What peers do at random.

use vcc_frames::wire::*;
use vcc_frames::{Packet, options};

use super::{GUEST_WINDOW_BYTES, Run, UINT16_MAX};

impl Run {
    pub(super) fn peer_ack(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        connection.ends.take(&mut self.guest);
        let latest = connection.ends.in_sequence;
        let ack = match self.rng.range(0, 10) {
            0 => latest.saturating_sub(self.rng.range(0, 20_000) as u32),
            _ => latest,
        };
        if self.rng.chance(300) {
            let limit_bytes = u64::from(UINT16_MAX) << connection.ends.scales[1];
            let most_bytes = self.rng.pick(&[1, 3_000, 100_000, 10_000_000]).min(limit_bytes);
            connection.window_bytes = self.rng.range(0, most_bytes) as u32;
        }
        let fin = u32::from(connection.ends.finished && ack == latest);
        let mut packet = connection.ends.peer_ack(ack + fin, connection.window_bytes);
        packet.seq = packet.seq.wrapping_add(connection.peer_next());
        if self.rng.chance(50) {
            packet.flags |= ECE;
        }
        let hole = connection.ends.beyond_hole().filter(|_| connection.ends.sack);
        if let Some(block) = hole.filter(|_| connection.ends.stamp.is_none()) {
            packet.options = options::join(&[options::sack(&[block])]);
        }
        let copies = self.rng.pick(&[1, 1, 1, 2, 4]);
        for _ in 0..copies {
            let _ = self.guest.receive(&packet);
        }
    }

    pub(super) fn peer_data(&mut self, number: usize) {
        let bytes = self.rng.range(1, 2000) as usize;
        let connection = &mut self.connections[number];
        if connection.peer_finished {
            return;
        }
        connection.ends.take(&mut self.guest);
        let ack = connection.ends.in_sequence + u32::from(connection.ends.finished);
        let packet = connection.ends.peer_ack(ack, connection.window_bytes);
        let seq = packet.seq.wrapping_add(connection.peer_sent);
        connection.peer_sent += bytes as u32;
        let _ = self.guest.receive(&Packet { seq, payload: vec![9; bytes], ..packet });
    }

    /// What the guest discards (law 17).
    pub(super) fn stray_from_peer(&mut self, number: usize) {
        let connection = &self.connections[number];
        let mut packet = connection.ends.peer_ack(connection.ends.in_sequence, 1 << 20);
        packet.seq = packet.seq.wrapping_add(connection.peer_next());
        let beyond = self.rng.range(0, 1 << 30) as u32;
        match self.rng.range(0, 4) {
            // Of what has not left, though it may be held.
            0 => {
                let key = connection.ends.key();
                let Some(flow) = self.guest.port.flow(&key) else { return };
                packet.ack = flow.snd_nxt.wrapping_add(1 + beyond);
            }
            1 => packet.seq = packet.seq.wrapping_add(GUEST_WINDOW_BYTES + 1 + beyond),
            2 => {
                packet.seq = packet.seq.wrapping_add(1 + beyond % GUEST_WINDOW_BYTES);
                packet.flags = RST;
            }
            _ => {
                packet.flags = SYN;
                packet.seq = packet.seq.wrapping_add(beyond);
            }
        }
        packet.payload =
            vec![1; self.rng.range(0, 100) as usize * usize::from(packet.flags == ACK)];
        let _ = self.guest.receive_forged(&packet);
    }

    pub(super) fn peer_closes(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        connection.ends.take(&mut self.guest);
        let ack = connection.ends.in_sequence + u32::from(connection.ends.finished);
        let packet = connection.ends.peer_ack(ack, connection.window_bytes);
        connection.peer_finished = true;
        let seq = packet.seq.wrapping_add(connection.peer_sent);
        let _ = self.guest.receive(&Packet { seq, flags: FIN | ACK, ..packet });
    }
}
