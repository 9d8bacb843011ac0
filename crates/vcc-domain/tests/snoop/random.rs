//! Arbitrary segments of both ends, valid and not: nothing is acknowledged that the guest does not
//! take from its ring, in the order of the ring.

use vcc_frames::Packet;
use vcc_frames::wire::*;

use crate::common::rng::Rng;
use crate::guest::{Guest, SEG_BYTES, Sent};

const STEPS: u32 = 400;
const WINDOW: u32 = 100_000;
const REACH: u32 = 3 * WINDOW;

/// What a guest takes, reading its ring in order. It keeps nothing behind a hole.
#[derive(Default)]
struct Model {
    ring: Vec<(u32, u32)>,
    nxt: u32,
    edge: u32,
    /// The highest acknowledgement to the peer.
    highest_ack: u32,
    promises: u32,
}

impl Model {
    /// What it will have once it has read its ring.
    fn reads_to(&self) -> u32 {
        self.ring.iter().fold(self.nxt, |nxt, &(from, end)| {
            if (from..=end).contains(&nxt) { end.max(nxt) } else { nxt }
        })
    }

    fn read(&mut self, frames: usize) {
        for (from, end) in self.ring.drain(..frames.min(self.ring.len())) {
            if (from..=end).contains(&self.nxt) {
                self.nxt = end.max(self.nxt);
            }
        }
    }

    fn check(&mut self, sent: &Sent) {
        for segment in &sent.to_fabric {
            assert!(
                segment.ack <= self.reads_to(),
                "law 16: {} of {}",
                segment.ack,
                self.reads_to()
            );
            assert!(
                segment.ack <= self.edge.max(self.nxt),
                "law 16: {} of {}",
                segment.ack,
                self.edge
            );
            assert!(
                segment.ack + segment.window < self.edge + 128,
                "{segment:?} beyond {}",
                self.edge
            );
            self.promises += u32::from(segment.ack > self.nxt && segment.ack > self.highest_ack);
            self.highest_ack = self.highest_ack.max(segment.ack);
        }
    }
}

fn peer_step(rng: &mut Rng, guest: &mut Guest, model: &mut Model) {
    let next = model.reads_to().max(model.highest_ack);
    let offset = match rng.range(0, 10) {
        0..7 => next,
        7 => next + rng.range(0, 3000) as u32,
        8 => next.saturating_sub(rng.range(0, 3000) as u32),
        _ => rng.range(0, REACH.into()) as u32,
    };
    let bytes = rng.pick(&[0, 1, 500, SEG_BYTES, SEG_BYTES, SEG_BYTES]);
    let mut packet = guest.peer_packet(offset, bytes);
    packet.flags |= rng.pick(&[0, 0, PSH, ECE, CWR]);
    let odd = rng.range(0, 20);
    match odd {
        0 => packet.flags |= URG,
        1 => packet.ack = packet.ack.wrapping_add(rng.next() as u32 | 1),
        2 => packet.macs.swap(0, 1),
        3 => packet.seq = packet.seq.wrapping_add(1 << 31),
        _ => {}
    }
    let mut bytes_of_frame = packet.frame();
    if odd == 4 {
        let at = rng.range(34, bytes_of_frame.len() as u64) as usize;
        bytes_of_frame[at] ^= 1 << rng.range(0, 8);
    }
    // A guest may take more of it than is promised; the model takes what it has to.
    if odd > 4 && offset + bytes <= model.edge {
        model.ring.push((offset, offset + bytes));
    }
    let sent = guest.receive_frame(vcc_domain::Frame::full(bytes_of_frame));
    model.check(&sent);
}

fn guest_step(rng: &mut Rng, guest: &mut Guest, model: &mut Model) {
    let frames = model.ring.len() as u64 + 1;
    model.read(rng.range(0, frames + 1) as usize);
    model.edge = model.edge.max(model.nxt + rng.range(0, WINDOW.into()) as u32 / 128 * 128);
    let window = (model.edge - model.nxt) / 128 * 128;
    model.edge = model.nxt + window;
    let own = guest.guest_packet(model.nxt, window);
    let sent = guest.send(&Packet { payload: vec![7; rng.pick(&[0, 0, 0, 10])], ..own });
    model.check(&sent);
}

#[test]
fn nothing_is_promised_that_the_guest_does_not_take() {
    let mut promises = 0;
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let stamps = rng.chance(500).then_some((1, 1));
        let mut guest = Guest { stamps, sack: rng.chance(500), ..Guest::new() }.accept();
        let mut model = Model { edge: crate::guest::FIRST_WINDOW, ..Model::default() };
        for _ in 0..STEPS {
            match rng.range(0, 10) {
                0..7 => peer_step(&mut rng, &mut guest, &mut model),
                7 | 8 => guest_step(&mut rng, &mut guest, &mut model),
                _ => {
                    let sent = guest.wait_ms(rng.range(0, 50));
                    model.check(&sent);
                }
            }
        }
        promises += model.promises;
    }
    assert!(promises > 10_000, "{promises}");
}
