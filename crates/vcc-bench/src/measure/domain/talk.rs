//! A connection of a guest through the port in user space.

use std::hint::black_box;
use std::time::{Duration, Instant};

use vcc_domain::{Checksum, Frame, Out, Port, ReceiveRing, Verdict};
use vcc_engine::{FlowKey, Params, sys};
use vcc_frames::wire::{ETHERNET_BYTES, IPV4_BYTES, TCP_BYTES, write_u32};
use vcc_frames::{MACS, Packet, checksum, payload};
use vcc_port::{Error, Result};

use super::super::connection::*;
use super::case::{Case, Event, SEG_BYTES, SEGS_PER_TURN};

const MAX_FLOWS: usize = 16;
const SEQ_AT: usize = ETHERNET_BYTES + IPV4_BYTES + 4;
/// With timestamps.
const HEADERS_BYTES: usize = ETHERNET_BYTES + IPV4_BYTES + TCP_BYTES + 12;
/// Peer's window: 256 KiB by the scale that it offers.
const PEER_WINDOW: u16 = 2048;
const RING: ReceiveRing = ReceiveRing { size_segs: 1024, free_segs: 1024, behind_segs: 0 };
/// From one turn to the next: about a round trip.
const TURN_NS: u64 = 50_000;
/// Slow start is over by then.
const ROUND_TRIPS_OF_START: u32 = 20;

/// An event with its frame.
enum Step {
    FromGuest(Frame),
    ToGuest(Frame),
    Room(ReceiveRing),
    Promise,
}

pub(super) struct Talk {
    port: Port,
    /// Does it acknowledge in the guest's name?
    snoops: bool,
    /// Does it acknowledge in the peer's name?
    splits: bool,
    /// The guest's, as it was reported last.
    ring: ReceiveRing,
    now_ns: u64,
    /// The guest's next new data, and the peer's next acknowledgement.
    seq: u32,
    acked: u32,
    /// The peer's next new data, and the guest's acknowledgement of it.
    received: u32,
    guest_acked: u32,
    /// The last super-segment's or segment's frame, with sequence number 0.
    template: Frame,
    out: Out,
}

impl Talk {
    /// An established connection whose congestion window has grown to `window_segs`.
    pub(super) fn open(params: Params, window_segs: u32) -> Result<Self> {
        let (port, snoops) = (Port::new(params, MAX_FLOWS), params.0.receive != 0);
        let splits = u32::from(params.0.act) == sys::ACT_SPLIT;
        let (seq, template, out) = (GUEST_ISN + 1, data_frame(1), Out::default());
        let received = PEER_ISN + 1;
        let mut talk = Talk {
            port,
            snoops,
            splits,
            ring: RING,
            now_ns: 0,
            seq,
            acked: seq,
            received,
            guest_acked: received,
            template,
            out,
        };
        for packet in handshake(PEER) {
            // Those of a SYN and a SYN-ACK are not scaled.
            let packet = Packet { window: u16::MAX, ..packet };
            let frame = Frame::full(packet.frame());
            let _ = talk.take(&mut match packet.from == GUEST {
                true => Step::FromGuest(frame),
                false => Step::ToGuest(frame),
            });
        }
        for _ in 0..ROUND_TRIPS_OF_START {
            talk.send_ahead(Event::Data { segs: 1 }, window_segs);
            for _ in 0..window_segs {
                talk.play(Event::Ack { segs: 1 });
            }
        }
        talk.acknowledge();
        talk.rest();
        let flow = talk.port.flow(&FlowKey::new(GUEST, PEER, None)).map(|flow| flow.0);
        match flow {
            Some(flow)
                if flow.cc.cwnd_segs >= window_segs
                    && (flow.snd_una, flow.snd_nxt) == (talk.seq, talk.seq) =>
            {
                Ok(talk)
            }
            _ => Err(wrong(format!("the connection did not get a window of {window_segs}"))),
        }
    }

    /// The guest sends `segs` segments by this event, which are not measured.
    pub(super) fn send_ahead(&mut self, data: Event, segs: u32) {
        let each_segs = match data {
            Event::Data { segs } | Event::Ack { segs } => segs,
            Event::Received { .. } | Event::Promise => 1,
            // Of a ring for all of them.
            Event::Room { .. } => segs,
        };
        for _ in 0..segs / each_segs {
            self.play(data);
        }
    }

    /// A turn of the case: how long the port took for it. The frames are made before.
    pub(super) fn turn(&mut self, case: &Case) -> Result<Duration> {
        let mut steps = Vec::new();
        for _ in 0..case.times {
            steps.extend(case.events.iter().map(|event| self.step(*event)));
        }
        let (untranslated, promised) = (self.untranslated(), self.out.to_guest.len());
        let begin = Instant::now();
        let verdicts: Vec<_> = steps.iter_mut().map(|step| black_box(self.take(step))).collect();
        let taken = begin.elapsed();
        let passed = steps.iter().zip(verdicts).filter_map(|(step, verdict)| match step {
            Step::FromGuest(frame) if verdict == Verdict::Pass => Some(frame),
            _ => None,
        });
        let passed = passed.chain(&self.out.to_fabric);
        let left_bytes: usize = passed.map(|frame| frame.bytes.len() - HEADERS_BYTES).sum();
        let promised = self.out.to_guest.len() - promised;
        if self.splits && promised != case.times as usize {
            let (name, times) = (case.name, case.times);
            return Err(wrong(format!(
                "in the case {name}, the guest was sent {promised} acknowledgements instead of {times}"
            )));
        }
        if self.snoops && self.port.promised_bytes() < SEGS_PER_TURN * SEG_BYTES {
            return Err(wrong(format!(
                "in the case {}, not every segment was promised",
                case.name
            )));
        }
        let expected_bytes = (case.leaving_segs * SEG_BYTES) as usize;
        if left_bytes != expected_bytes || self.untranslated() != untranslated {
            return Err(wrong(format!(
                "in the case {}, {left_bytes} bytes left and {} frames were not translated, instead of \
                 {expected_bytes} and none",
                case.name,
                self.untranslated() - untranslated,
            )));
        }
        self.rest();
        Ok(taken)
    }

    /// Dropped frames included.
    fn untranslated(&self) -> u64 {
        self.port.counters().iter().map(|(_, count)| count).sum()
    }

    fn play(&mut self, event: Event) {
        let mut step = self.step(event);
        let _ = self.take(&mut step);
        self.rest();
    }

    /// The guest acknowledges all that it has received, and has room for a turn.
    fn acknowledge(&mut self) {
        self.guest_acked = self.received;
        let window = u16::MAX;
        let ack = Packet { seq: self.seq, ack: self.received, window, ..ack(GUEST, PEER) };
        let _ = self.port.from_guest(self.now_ns, &mut Frame::full(ack.frame()), &mut self.out);
    }

    /// Time passes, and what has left is gone.
    fn rest(&mut self) {
        if self.guest_acked != self.received {
            self.acknowledge();
        }
        self.out.to_fabric.clear();
        self.out.to_guest.clear();
        self.now_ns += TURN_NS;
        self.port.advance(self.now_ns, &mut self.out);
    }

    fn take(&mut self, step: &mut Step) -> Verdict {
        match step {
            Step::FromGuest(frame) => self.port.from_guest(self.now_ns, frame, &mut self.out),
            Step::Promise => {
                self.port.advance(self.now_ns, &mut self.out);
                Verdict::Held
            }
            Step::Room(ring) => {
                self.ring = *ring;
                self.port.set_room(self.now_ns, *ring, &mut self.out);
                Verdict::Held
            }
            Step::ToGuest(frame) => {
                let (verdict, receipt) = self.port.to_guest(self.now_ns, frame, &mut self.out);
                if verdict == Verdict::Pass && self.snoops {
                    self.port.set_room(self.now_ns, self.ring, &mut self.out);
                    let taken = Frame { bytes: std::mem::take(&mut frame.bytes), ..*frame };
                    self.port.placed(self.now_ns, taken, receipt, &mut self.out);
                }
                verdict
            }
        }
    }

    fn step(&mut self, event: Event) -> Step {
        match event {
            Event::Data { segs } => {
                let bytes = segs * SEG_BYTES;
                if self.template.bytes.len() != HEADERS_BYTES + bytes as usize {
                    self.template = data_frame(segs);
                }
                let mut frame = self.template.clone();
                // A partial checksum does not cover it.
                write_u32(&mut frame.bytes, SEQ_AT, self.seq);
                self.seq = self.seq.wrapping_add(bytes);
                Step::FromGuest(frame)
            }
            Event::Promise => Step::Promise,
            Event::Room { segs } => Step::Room(ReceiveRing { free_segs: segs, ..RING }),
            Event::Received { is_verified } => {
                let packet = Packet {
                    macs: [MACS[1], MACS[0]],
                    seq: self.received,
                    ack: self.acked,
                    window: PEER_WINDOW,
                    payload: payload(SEG_BYTES as usize),
                    ..ack(PEER, GUEST)
                };
                self.received = self.received.wrapping_add(SEG_BYTES);
                let checksum = if is_verified { Checksum::Verified } else { Checksum::Full };
                Step::ToGuest(Frame { checksum, ..Frame::full(packet.frame()) })
            }
            Event::Ack { segs } => {
                self.acked = self.acked.wrapping_add(segs * SEG_BYTES);
                let packet = Packet {
                    seq: PEER_ISN + 1,
                    ack: self.acked,
                    window: PEER_WINDOW,
                    ..ack(PEER, GUEST)
                };
                Step::ToGuest(Frame::full(packet.frame()))
            }
        }
    }
}

/// Data as a card with segmentation and checksum offload passes it on.
fn data_frame(segs: u32) -> Frame {
    let packet = Packet { payload: payload((segs * SEG_BYTES) as usize), ..data(PEER) };
    let mut bytes = packet.frame();
    checksum::make_partial(&mut bytes, &packet.headers());
    let gso_size = if segs > 1 { SEG_BYTES as u16 } else { 0 };
    Frame { bytes, gso_size, checksum: Checksum::Partial }
}

fn wrong(why: String) -> Error {
    Error::System { doing: "measure the port in user space".into(), why }
}
