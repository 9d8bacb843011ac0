//! A guest and its front end that do as the input says.

use std::fs::File;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

use vcc_engine::sys;
use vcc_frames::{MACS, Packet, options, payload};
use vcc_vhost::testing::*;

use super::host::{Host, eventfd};
use crate::input::Input;

const RINGS: usize = 4;
/// Where indirect tables are.
const TABLE_AT: u64 = BUFFERS_AT + 0x8_0000;
const ENDS: [&str; 2] = ["10.0.0.1:1000", "10.0.0.2:80"];
const GUEST_SEQ: u32 = 1000;
const PEER_SEQ: u32 = 5000;
const MSS_BYTES: u16 = 1000;

/// Of a guest's header: none, a checksum, super-segments, and what is none.
const HEADERS: [[u8; 12]; 8] = [
    [0; 12],
    [1, 0, 0, 0, 0, 0, 34, 0, 16, 0, 0, 0],
    [1, 1, 54, 0, 232, 3, 34, 0, 16, 0, 0, 0],
    [1, 0x81, 54, 0, 232, 3, 34, 0, 16, 0, 0, 0],
    [1, 4, 74, 0, 232, 3, 54, 0, 16, 0, 0, 0],
    [1, 1, 0, 0, 0, 0, 34, 0, 16, 0, 0, 0],
    [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    [1, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0],
];

pub struct Hostile {
    guest: Guest,
    front_end: FrontEnd,
    /// Descriptors that belong nowhere.
    others: [File; 2],
    /// The card's, as it was last saved.
    state: Vec<u8>,
}

impl Hostile {
    pub fn new(input: &mut Input, host: &mut Host) -> Self {
        let others = [eventfd(), File::open("/dev/null").expect("a file")];
        let guest = Guest::new(RINGS);
        let front_end = FrontEnd::connect(host.socket()).without_waiting();
        let mut hostile = Hostile { guest, front_end, others, state: Vec::new() };
        if input.below(8) < 7 {
            hostile.set_up(input);
        }
        host.turn();
        hostile
    }

    /// As an honest one does, with these features.
    fn set_up(&mut self, input: &mut Input) {
        let features = input.pick(&[
            USUAL,
            USUAL | EVENT_IDX,
            USUAL & !MERGEABLE,
            USUAL | 1 << 22,
            VERSION_1 | CSUM,
            USUAL & !PROTOCOL_FEATURES,
            USUAL & !VERSION_1,
        ]);
        self.front_end.ask(3, &[], &[]);
        let logs = input.below(4) == 0;
        if logs {
            // In the guest's own memory.
            self.front_end.moves();
            let log = [0x1000, input.pick(&[0, 0x1000, 1, MEMORY_BYTES as u64])];
            self.front_end.ask(6, &longs(&log), &[self.guest.file().as_raw_fd()]);
        }
        self.front_end.share(&self.guest, if logs { features | LOG_ALL } else { features });
        let rings = input.pick(&[2, RINGS]);
        for ring in 0..rings {
            self.front_end.begin(&self.guest, ring);
        }
    }

    pub fn step(&mut self, input: &mut Input, host: &mut Host) {
        let ring = usize::from(input.below(RINGS as u8));
        match input.below(21) {
            0 | 1 => {
                self.guest.kick(ring);
                host.turn();
            }
            2 | 3 => {
                let index = input.u16() % RING_ENTRIES;
                let (at, bytes, flags, next) = descriptor(input);
                self.guest.describe(ring, index, at, bytes, flags, next);
            }
            4 => {
                let place = TABLE_AT + 16 * u64::from(input.below(8));
                let (at, bytes, flags, next) = descriptor(input);
                self.guest.write_descriptor(place, at, bytes, flags, next);
            }
            5 => {
                let head = input.pick(&[0, 1, 2, 255, 256, u16::MAX]);
                self.guest.offer(ring, head);
            }
            6 => self.guest.skip(ring, input.pick(&[1, 2, 255, 256, 257, 0x8000, u16::MAX])),
            7 => self.write(input, ring),
            8 => {
                let (frame, header) = (from_guest(input), input.pick(&HEADERS));
                for _ in 0..input.pick(&[1, 1, 1, 20]) {
                    self.guest.send_on(ring, header, &frame);
                }
                host.turn();
            }
            9 => {
                let frame = to_guest(input);
                for _ in 0..input.pick(&[1, 1, 1, 64]) {
                    host.arrive([0; 12], &frame);
                }
                host.turn();
            }
            10 => {
                let bytes = input.pick(&[2048, 12, 13, 100, 0, u32::MAX, 65_549]);
                self.guest.offer_buffers(ring, input.pick(&[1, 8, 64, 256]), bytes);
                host.turn();
            }
            11 | 12 => {
                self.ask(input);
                host.turn();
            }
            13 => {
                self.place_ring(input, ring);
                host.turn();
            }
            14 => {
                self.share(input);
                host.turn();
            }
            15 => {
                let count = usize::from(input.below(40));
                let bytes: Vec<u8> = (0..count).map(|_| input.u8()).collect();
                self.front_end.write(&bytes);
                host.turn();
            }
            16 => {
                self.front_end = FrontEnd::connect(host.socket()).without_waiting();
                host.turn();
                self.guest.forget();
                self.set_up(input);
                host.turn();
            }
            17 => self.front_end.drain(),
            18 => host.set_down(input.below(2) != 0),
            19 => self.pass_state(input, host),
            _ => {
                // As QEMU stops a ring, and starts it again.
                self.front_end.ask(11, &words(&[ring as u32, 0]), &[]);
                host.turn();
                self.front_end.begin(&self.guest, ring);
                host.turn();
            }
        }
    }

    /// As QEMU moves a card, or in part; what is loaded has perhaps been changed.
    fn pass_state(&mut self, input: &mut Input, host: &mut Host) {
        for ring in 0..RINGS as u32 {
            self.front_end.ask(11, &words(&[ring, 0]), &[]);
        }
        let (mut reader, mut writer) = pipe();
        let direction = input.pick(&[SAVE, LOAD, LOAD, 2]);
        let end = if direction == SAVE { writer.as_raw_fd() } else { reader.as_raw_fd() };
        self.front_end.ask(42, &words(&[direction, input.pick(&[0, 0, 0, 1])]), &[end]);
        host.turn();
        if direction == SAVE {
            drop(writer);
            // A pipe's worth; it ends there if the card has not written on.
            let mut part = vec![0; 1 << 16];
            let bytes = reader.read(&mut part).unwrap_or(0);
            self.state = part[..bytes].to_vec();
        } else {
            let mut state = self.state.clone();
            for _ in 0..input.pick(&[0, 0, 1, 3]) {
                let at = usize::from(input.u16());
                if let Some(byte) = state.get_mut(at) {
                    *byte = input.u8();
                }
            }
            state.truncate(input.pick(&[1 << 16, 1 << 16, 100]));
            writer.write_all(&state).expect("no more than a pipe takes");
            drop(writer);
        }
        if input.below(4) > 0 {
            self.front_end.ask(43, &[], &[]);
        }
        host.turn();
        if input.below(2) == 0 {
            (0..RINGS).for_each(|ring| self.front_end.begin(&self.guest, ring));
            host.turn();
        }
    }

    /// Writes over what only the other side should write, or what it reads.
    fn write(&mut self, input: &mut Input, ring: usize) {
        let at = place(input, ring);
        let value = input.u16().to_le_bytes();
        if at < MEMORY_BYTES as u64 - 1 {
            self.guest.write(at, &value);
        }
    }

    /// A message of any kind.
    fn ask(&mut self, input: &mut Input) {
        const KNOWN: [u32; 23] =
            [1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 34, 99, 6, 7, 19, 42, 43];
        let request = input.pick(&KNOWN);
        let flags = input.pick(&[1, 9, 1, 5, 0, u32::MAX]);
        let count = input.pick(&[1, 2, 0, 5, 10, 129]);
        let payload: Vec<u32> = (0..count).map(|_| self.word(input)).collect();
        let count = input.pick(&[0, 1, 1, 2, 8, 9]);
        let fds: Vec<RawFd> = (0..count).map(|_| self.fd(input)).collect();
        let bytes = words(&payload);
        let cut = bytes.len().saturating_sub(input.pick(&[0, 0, 0, 1, 3]));
        self.front_end.ask_with(request, flags, &bytes[..cut], &fds);
    }

    fn word(&self, input: &mut Input) -> u32 {
        match input.u8() {
            small @ 0..0x40 => small.into(),
            0x40 => 256,
            0x41 => 1024,
            0x42 => 1025,
            0x43 => 0x10000,
            0x44 => u32::MAX,
            0x45 => USUAL as u32,
            0x46 => 0x100,
            _ => input.u32(),
        }
    }

    fn fd(&self, input: &mut Input) -> RawFd {
        let ring = usize::from(input.below(RINGS as u8));
        let [kick, call] = self.guest.events_of(ring);
        let all = [
            kick,
            call,
            self.guest.file().as_raw_fd(),
            self.front_end.as_raw_fd(),
            self.others[0].as_raw_fd(),
            self.others[1].as_raw_fd(),
        ];
        input.pick(&all)
    }

    /// Rings of any size at any place: misaligned, over each other, over the end of memory.
    fn place_ring(&mut self, input: &mut Input, ring: usize) {
        let number = ring as u32;
        self.front_end.ask(11, &words(&[number, 0]), &[]);
        let size = input.pick(&[RING_ENTRIES.into(), 1, 2, 1024, 0, 3, 2048, u32::MAX]);
        let mut at = || FRONT_END_AT.wrapping_add(place(input, ring));
        let addresses = [number.into(), at(), at(), at(), 0];
        self.front_end.ask(8, &words(&[number, size]), &[]);
        self.front_end.ask(9, &longs(&addresses), &[]);
        self.front_end.ask(10, &words(&[number, input.pick(&[0, 1, 0xffff, u32::MAX])]), &[]);
        let [kick, call] = self.guest.events_of(ring);
        self.front_end.ask(13, &longs(&[number.into()]), &[call]);
        self.front_end.ask(12, &longs(&[number.into()]), &[kick]);
        self.front_end.ask(18, &words(&[number, 1]), &[]);
    }

    /// Regions of memory that need not fit each other or their files.
    fn share(&mut self, input: &mut Input) {
        let memory = MEMORY_BYTES as u64;
        let count = input.pick(&[1, 2, 0, 8, 9]);
        let mut table = vec![input.pick(&[count, count, count, 0, u64::MAX])];
        let mut fds = Vec::new();
        for number in 0..count {
            let near = number * memory;
            table.extend([
                input.pick(&[near, 0, 1, 0x1000, memory / 2, 1 << 40, u64::MAX, u64::MAX - 0xfff]),
                input.pick(&[memory, 0x1000, 0, 1, 0xfff, memory + 1, 1 << 47, u64::MAX]),
                FRONT_END_AT.wrapping_add(input.pick(&[
                    near,
                    0,
                    1,
                    u64::MAX,
                    0u64.wrapping_sub(FRONT_END_AT),
                ])),
                input.pick(&[0, 0, 0x1000, 1, memory - 0x1000, u64::MAX]),
            ]);
            fds.push(if input.below(4) < 3 {
                self.guest.file().as_raw_fd()
            } else {
                self.fd(input)
            });
        }
        self.front_end.ask(5, &longs(&table), &fds);
    }
}

/// A guest's address that matters to a ring, or none.
fn place(input: &mut Input, ring: usize) -> u64 {
    let start = (0x1_0000 * ring) as u64;
    let (kind, number) = (input.below(8), u64::from(input.u16()));
    let (entry, entries) = (number % u64::from(RING_ENTRIES), u64::from(RING_ENTRIES));
    match kind {
        0 => start + 2 * (number % (8 * entries)),
        1 => start + AVAILABLE_AT + 2 * (number % 3),
        2 => start + AVAILABLE_AT + 4 + 2 * (number % (entries + 1)),
        3 => start + USED_AT + 2 * (number % 3),
        4 => start + USED_AT + 4 + 4 * (number % (2 * entries + 1)),
        5 => BUFFERS_AT + 16 * entry,
        6 => MEMORY_BYTES as u64 - entry,
        _ => [1 << 40, u64::MAX - number, start + number][number as usize % 3],
    }
}

/// Address, bytes, flags and next one of a descriptor.
fn descriptor(input: &mut Input) -> (u64, u32, u16, u16) {
    let memory = MEMORY_BYTES as u64;
    let near = BUFFERS_AT + u64::from(input.u8()) * 0x100;
    let at =
        input.pick(&[near, near, TABLE_AT, 0, 0x4000, 0x8000, memory - 50, 1 << 40, u64::MAX - 4]);
    let bytes =
        [100, 2048, 12, 11, 0, 1, 25, 26, 16, 17, 32, 128, 65_549, 70_000, 1 << 31, u32::MAX];
    let flags = u16::from(input.below(8));
    (at, input.pick(&bytes), flags, input.pick(&[0, 1, 2, 3, 255, 256, 60_000]))
}

fn packet(input: &mut Input, is_of_guest: bool) -> Packet {
    let ends: [SocketAddr; 2] = ENDS.map(|end| end.parse().expect("an end"));
    let [from, to] = if is_of_guest { ends } else { [ends[1], ends[0]] };
    let macs = if is_of_guest { MACS } else { [MACS[1], MACS[0]] };
    let (own, others) = if is_of_guest { (GUEST_SEQ, PEER_SEQ) } else { (PEER_SEQ, GUEST_SEQ) };
    let packet = Packet { macs, window: 60_000, ..Packet::new(from, to) };
    match input.below(4) {
        0 => {
            let flags = if is_of_guest { sys::TCP_SYN } else { sys::TCP_SYN | sys::TCP_ACK } as u16;
            let ack = if is_of_guest { 0 } else { others };
            Packet { flags, seq: own - 1, ack, options: options::mss(MSS_BYTES), ..packet }
        }
        _ => {
            let (seq, ack) = (u32::from(input.u8()) * 1000, u32::from(input.u8()) * 1000);
            let payload = payload(input.pick(&[0, 1000, 1, 3000]));
            Packet { seq: own + seq, ack: others + ack, payload, ..packet }
        }
    }
}

/// At most as long as a buffer of the guest's.
fn from_guest(input: &mut Input) -> Vec<u8> {
    match input.below(4) {
        0 => (0..input.below(80)).map(|_| input.u8()).collect(),
        _ => packet(input, true).frame(),
    }
}

fn to_guest(input: &mut Input) -> Vec<u8> {
    match input.below(4) {
        0 => (0..input.below(80)).map(|_| input.u8()).collect(),
        _ => packet(input, false).frame(),
    }
}
