//! Generated traffic of several connections at once: mostly plausible, sometimes absurd.

use std::thread::sleep;
use std::time::Duration;

use vcc_engine::{GuestEcn, Mode, Params, Underlay, sys};
use vcc_frames::wire::*;
use vcc_frames::{Packet, options, payload};
use vcc_port::AttachOptions;

use crate::conversation::{Connection, MSS_BYTES, Offers, Shape};
use crate::direction::Direction::{self, FromGuest, ToGuest};
use crate::dual::DualRun;
use crate::layout::{Layout, fill_checksums};
use crate::random::Random;
use crate::setup::usually;

const CONNECTIONS: u16 = 8;
const STEPS: usize = 1500;
/// Longer than a round trip here, and short enough to wait for.
const RTO_MIN_US: u32 = 1_000;
const LONGER_THAN_RTO: Duration = Duration::from_millis(4);

struct Mix {
    run: DualRun,
    random: Random,
    connections: Vec<Connection>,
}

impl Mix {
    fn new(options: &AttachOptions, seed: u64) -> Self {
        let mut run = DualRun::new(options);
        run.doing = format!("seed {seed}, opening");
        let mut random = Random::new(seed);
        let shapes: Vec<Shape> = Shape::all().collect();
        let connections =
            (0..CONNECTIONS).map(|i| Connection::new(random.pick(&shapes), 60_000 + i)).collect();
        let mut mix = Mix { run, random, connections };
        for index in 0..mix.connections.len() {
            mix.open(index);
        }
        mix
    }

    fn send(&mut self, index: usize, from: Direction, gso_size: u32, packet: &Packet) {
        self.connections[index].sent(from, packet);
        let mut frame = packet.frame();
        if self.random.percent(4) {
            self.harm(&mut frame);
        }
        self.run.send(from, &frame, gso_size);
    }

    /// Overwrites a random byte of the headers.
    fn harm(&mut self, frame: &mut [u8]) {
        let Ok(at) = Layout::parse(frame, 0) else { return };
        let victim = self.random.below(at.payload as u32) as usize;
        frame[victim] = self.random.next() as u8;
        fill_checksums(frame);
    }

    /// A random handshake, of which any segment may be missing.
    fn open(&mut self, index: usize) {
        let near_the_wrap = 0u32.wrapping_sub(self.random.below(100_000));
        let anywhere = self.random.next() as u32;
        let iss = [near_the_wrap, anywhere];
        let offers = Offers {
            mss_bytes: self.random.pick(&[None, Some(1460), Some(1460), Some(536), Some(8960)]),
            wscale: self.random.pick(&[None, Some(0), Some(3), Some(7), Some(10), Some(14)]),
            sack: self.random.percent(70),
            timestamps: self.random.percent(70),
        };
        let connection = &mut self.connections[index];
        connection.guest_next = self.random.pick(&iss);
        connection.peer_next = self.random.pick(&iss);
        connection.offers = offers;
        connection.shape.opener = self.random.pick(&Direction::BOTH);
        let opener = connection.shape.opener;

        let mut syn = connection.syn();
        syn.flags |= self.random.pick(&[0, 0, 0, ECE | CWR, AE | CWR | ECE]);
        if self.random.percent(50) {
            add_option(&mut syn, options::hello(HELLO_OFFER));
        }
        self.send(index, opener, 0, &syn);
        if self.random.percent(10) {
            syn.flags = SYN;
            self.send(index, opener, 0, &syn);
        }
        let mut syn_ack = self.connections[index].syn_ack();
        syn_ack.flags |= self.random.pick(&[0, ECE, ECE, ECE, ECE | CWR, AE | CWR]);
        if self.random.percent(70) {
            let what = self.random.pick(&[HELLO_ACCEPT, HELLO_ACCEPT, HELLO_OFFER, 9]);
            add_option(&mut syn_ack, options::hello(what));
        }
        for percent in [97, 5] {
            if self.random.percent(percent) {
                self.send(index, opener.other(), 0, &syn_ack);
            }
        }
        if self.random.percent(95) {
            let ack = self.connections[index].packet(opener);
            self.send(index, opener, 0, &ack);
        }
    }

    fn step(&mut self) {
        let index = self.random.below(self.connections.len() as u32) as usize;
        match self.random.below(100) {
            0..30 => self.data_from_guest(index),
            30..38 => self.data_again(index),
            38..70 => self.ack_from_peer(index),
            70..82 => self.data_from_peer(index),
            82..92 => self.ack_from_guest(index),
            92..94 => self.close(index),
            94..96 => self.open(index),
            96..97 => sleep(LONGER_THAN_RTO),
            _ => self.anything(index),
        }
    }

    fn bytes(&mut self) -> usize {
        let some = self.random.below(MSS_BYTES as u32) as usize + 1;
        self.random.pick(&[MSS_BYTES, MSS_BYTES, 1, some])
    }

    fn data_from_guest(&mut self, index: usize) {
        let mut packet = self.connections[index].packet(FromGuest);
        packet.payload = payload(self.bytes());
        packet.flags |= self.random.pick(&[0, 0, PSH, CWR, ECE]);
        packet.traffic_class = self.random.pick(&[0, 0, 0xb8, ECT_0]);
        let gso_size = self.random.pick(&[0, 0, 0, 100, 536]);
        self.send(index, FromGuest, gso_size, &packet);
    }

    fn data_again(&mut self, index: usize) {
        let mut packet = self.connections[index].packet(FromGuest);
        let back_bytes = self.random.below(6) * MSS_BYTES as u32;
        packet.seq = packet.seq.wrapping_sub(back_bytes);
        packet.payload = payload(self.bytes());
        self.send(index, FromGuest, 0, &packet);
    }

    /// ACKs of all data, of a part, or of what was acknowledged before, with random SACK blocks,
    /// marks and windows.
    fn ack_from_peer(&mut self, index: usize) {
        let mut packet = self.connections[index].packet(ToGuest);
        let missing_bytes = self.random.pick(&[0, 0, 1, 2, 3, 5]) * MSS_BYTES as u32;
        packet.ack = packet.ack.wrapping_sub(missing_bytes);
        let any = self.random.next() as u16;
        packet.window = self.random.pick(&[502, 502, 502, 502, 0, 1, 65_535, any]);
        packet.flags |= self.random.pick(&[0, 0, 0, ECE]);
        if missing_bytes > 0 && self.random.percent(30) {
            // SACK above the acknowledgement, or D-SACK.
            let at = packet.ack.wrapping_add(MSS_BYTES as u32);
            let back_bytes = self.random.pick(&[0, 0, 2, 3]) * MSS_BYTES as u32;
            let left = at.wrapping_sub(back_bytes);
            let block = (left, left.wrapping_add(MSS_BYTES as u32));
            packet.options = [packet.options, options::nops(2), options::sack(&[block])].concat();
        }
        if self.random.percent(50) {
            let report = self.report(index);
            add_option(&mut packet, report);
        }
        for _ in 0..self.random.pick(&[1, 1, 1, 2, 4]) {
            self.send(index, ToGuest, 0, &packet);
        }
    }

    /// The next report of the peer: a little more than the last, sometimes too much.
    fn report(&mut self, index: usize) -> Vec<u8> {
        let state = self.run.state(&self.connections[index].key());
        let heard = state.map(|state| state.heard).unwrap_or_default();
        let more = [0, 0, 1448, 1448, 2896, 100_000];
        let [ect0_bytes, ce_bytes] = [heard.ect0_bytes, heard.ce_bytes]
            .map(|bytes| bytes.wrapping_add(self.random.pick(&more)) & COUNTER_MASK);
        match self.random.percent(80) {
            true => options::pack(ect0_bytes, ce_bytes),
            false => options::fack(ect0_bytes, ce_bytes),
        }
    }

    fn data_from_peer(&mut self, index: usize) {
        let mut packet = self.connections[index].packet(ToGuest);
        packet.payload = payload(self.bytes());
        packet.flags |= self.random.pick(&[0, 0, PSH, CWR, ECE]);
        packet.traffic_class = self.random.pick(&[0, ECT_0, ECT_0, CE, 0xb8 | CE]);
        let gso_size = self.random.pick(&[0, 0, 536]);
        self.send(index, ToGuest, gso_size, &packet);
    }

    fn ack_from_guest(&mut self, index: usize) {
        let mut packet = self.connections[index].packet(FromGuest);
        packet.window = self.random.next() as u16;
        packet.padding = vec![0; self.random.pick(&[0, 0, 6])];
        self.send(index, FromGuest, 0, &packet);
    }

    fn close(&mut self, index: usize) {
        let from = self.random.pick(&Direction::BOTH);
        let mut packet = self.connections[index].packet(from);
        packet.flags = self.random.pick(&[ACK | FIN, ACK | FIN, RST, RST | ACK]);
        self.send(index, from, 0, &packet);
    }

    /// Random numbers and flags on a known connection.
    fn anything(&mut self, index: usize) {
        let from = self.random.pick(&Direction::BOTH);
        let mut packet = self.connections[index].packet(from);
        let near = self.random.below(1 << 16);
        packet.seq = match self.random.percent(50) {
            true => packet.seq.wrapping_add(near),
            false => self.random.next() as u32,
        };
        packet.ack = match self.random.percent(50) {
            true => packet.ack.wrapping_sub(near),
            false => self.random.next() as u32,
        };
        packet.flags = self.random.next() as u16 & ALL_FLAGS;
        packet.window = self.random.next() as u16;
        packet.traffic_class = self.random.next() as u8;
        packet.payload = payload(self.random.pick(&[0, 0, 300]));
        packet.options = options::nops(4 * self.random.below(8) as usize);
        let option = match self.random.below(4) {
            0 => self.report(index),
            1 => options::hello(self.random.below(4) as u8),
            _ => Vec::new(),
        };
        add_option(&mut packet, option);
        // Not recorded as sent, so the connection continues from where it was.
        self.run.send(from, &packet.frame(), 0);
    }
}

/// Adds an option if it fits.
fn add_option(packet: &mut Packet, option: Vec<u8>) {
    if packet.options.len() + option.len() <= 40 {
        packet.options = options::join(&[packet.options.clone(), option]);
    }
}

fn mixed_traffic(underlay: &str, mode: Mode) {
    if !vcc_testing::can_attach() {
        return;
    }
    let usual = Params::with(|p| {
        p.underlay = underlay.parse::<Underlay>().expect("an underlay of the engine").number();
        p.mode = mode.number();
    });
    let unusual = Params(sys::vcc_params {
        guest_ecn: GuestEcn::Override.number(),
        prr: 0,
        undo: 1,
        pace_push: 0,
        feedback: 0,
        window_max_bytes: 64 << 10,
        window_floor_segs: 2,
        initial_window_segs: 3,
        rto_min_us: RTO_MIN_US,
        ..usual.0
    });
    let overriding =
        Params(sys::vcc_params { guest_ecn: GuestEcn::Override.number(), police: 1, ..usual.0 });
    let timing_out = Params(sys::vcc_params { rto_min_us: RTO_MIN_US, ..usual.0 });
    // Fewer runs if the datapath changes less.
    let runs = match (underlay, mode) {
        ("transparent", _) => vec![usual, overriding],
        (_, Mode::Shadow) => vec![unusual, timing_out],
        _ => vec![usual, unusual, overriding, timing_out],
    };
    for (params, seed) in runs.into_iter().zip(1..) {
        let mut mix = Mix::new(&usually(params), seed);
        for step in 0..STEPS {
            mix.run.doing = format!("seed {seed}, step {step}");
            mix.step();
        }
        mix.run.assert_all();
    }
}

#[test]
fn reno_ecn_enforced() {
    mixed_traffic("reno-ecn", Mode::Enforce);
}

#[test]
fn reno_ecn_in_shadow() {
    mixed_traffic("reno-ecn", Mode::Shadow);
}

#[test]
fn dctcp_enforced() {
    mixed_traffic("dctcp", Mode::Enforce);
}

#[test]
fn dctcp_in_shadow() {
    mixed_traffic("dctcp", Mode::Shadow);
}

#[test]
fn cubic_enforced() {
    mixed_traffic("cubic", Mode::Enforce);
}

#[test]
fn reno_enforced() {
    mixed_traffic("reno", Mode::Enforce);
}

#[test]
fn reno_in_shadow() {
    mixed_traffic("reno", Mode::Shadow);
}

#[test]
fn transparent_enforced() {
    mixed_traffic("transparent", Mode::Enforce);
}
