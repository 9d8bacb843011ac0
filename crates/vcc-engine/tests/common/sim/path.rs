//! The path: delay, loss, duplication, reordering and marks.

use std::cmp::Reverse;

use vcc_engine::sys;

use super::{Packet, Side, Sim};

/// One direction of the path.
#[derive(Clone, Copy, Default)]
pub struct PathConfig {
    pub delay_us: u64,
    /// Transmission time of a segment, which spaces ACKs.
    pub spacing_us: u64,
    pub loss_permille: u32,
    pub duplicate_permille: u32,
    pub reorder_permille: u32,
    pub mark_permille: u32,
    /// Mean payload bytes per mark, at random, so that a runt is marked by its size; 0: no marks.
    pub mark_each_bytes: u32,
    /// Queueing delay above which a segment is marked; 0: no marks.
    pub mark_above_us: u64,
    /// Maximum of a random additional delay.
    pub jitter_us: u64,
}

impl Sim {
    pub(super) fn enter(&mut self, to: Side, mut packet: Packet) {
        let path = self.paths[to as usize];
        if self.rng.chance(path.loss_permille) {
            return;
        }
        let markable = packet.segment.ip_ecn != 0;
        let free_at = &self.free_at[to as usize];
        let leaves_us = self.now_us.max(free_at.get()) + path.spacing_us;
        let is_long = path.mark_above_us > 0 && leaves_us - self.now_us > path.mark_above_us;
        let by_bytes = path.mark_each_bytes > 0
            && self.rng.range(0, path.mark_each_bytes.into()) < packet.segment.payload_bytes.into();
        if markable && (is_long || by_bytes || self.rng.chance(path.mark_permille)) {
            packet.segment.ip_ecn = sys::IP_ECN_CE as u8;
        }
        free_at.set(leaves_us);
        let copies = 1 + u64::from(self.rng.chance(path.duplicate_permille));
        for _ in 0..copies {
            let mut arrives_us = leaves_us + path.delay_us;
            if path.jitter_us > 0 {
                arrives_us += self.rng.range(0, path.jitter_us);
            }
            if self.rng.chance(path.reorder_permille) {
                arrives_us += self.rng.range(100, 6000);
            }
            let order = self.packets.len();
            self.packets.push(packet);
            self.arrivals.push(Reverse((arrives_us, order as u64, to, order)));
        }
    }
}
