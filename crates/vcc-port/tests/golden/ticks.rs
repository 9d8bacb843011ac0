//! Usual segments that get the time of the kernel's last tick (engine/clock.h) leave as if they had
//! their own.

use vcc_engine::{FlowState, Params, sys};
use vcc_frames::{Packet, payload};
use vcc_port::AttachOptions;

use crate::conversation::{Connection, MSS_BYTES, Shape};
use crate::direction::Direction::{self, FromGuest, ToGuest};
use crate::loaded::Loaded;
use crate::setup::{usual, usually};

const FLIGHT_SEGS: u32 = 8;

struct Run {
    datapath: Loaded,
    connection: Connection,
    frames: Vec<Vec<u8>>,
}

impl Run {
    fn opened(options: &AttachOptions) -> Self {
        let connection = Connection::new(Shape::plain(FromGuest), 40_000);
        let mut it =
            Self { datapath: Loaded::without_timer(options), connection, frames: Vec::new() };
        it.send(FromGuest, it.connection.syn());
        it.send(ToGuest, it.connection.syn_ack());
        it.send(FromGuest, it.connection.packet(FromGuest));
        it
    }

    fn send(&mut self, from: Direction, packet: Packet) {
        let output = self.datapath.run(from.program(), &packet.frame(), 0).expect("it runs");
        self.frames.push(output.frame);
        self.connection.sent(from, &packet);
    }

    fn state(&self) -> FlowState {
        self.datapath.flows().expect("flows")[0].state
    }

    fn data(&mut self) {
        let data = self.connection.packet(FromGuest);
        self.send(FromGuest, Packet { payload: payload(MSS_BYTES), ..data });
    }

    /// A flight and its ACKs.
    fn flight(&mut self) {
        (0..FLIGHT_SEGS).for_each(|_| self.data());
        for missing in (0..FLIGHT_SEGS).rev() {
            let mut ack = self.connection.packet(ToGuest);
            ack.ack = ack.ack.wrapping_sub(missing * MSS_BYTES as u32);
            self.send(ToGuest, ack);
        }
    }
}

/// Its windows do not depend on the time, but for a guest that pauses for an RTO.
fn reno() -> Params {
    Params::with(|p| p.underlay = sys::UNDERLAY_reno as u8)
}

/// With the time of ticks, or its own for each segment.
fn options(has_ticks: bool) -> AttachOptions {
    if has_ticks { AttachOptions { params: reno(), ..usual() } } else { usually(reno()) }
}

#[test]
fn segments_of_a_tick_have_its_time() {
    if !vcc_testing::can_attach() {
        return;
    }
    for has_ticks in [true, false] {
        let mut run = Run::opened(&options(has_ticks));
        let mut repeated = 0;
        run.data();
        for _ in 0..500 {
            let before_us = run.state().sent_us;
            run.data();
            repeated += u32::from(run.state().sent_us == before_us);
        }
        // How many depends on the machine, which may be slow, but two times of its clock differ.
        assert_eq!(repeated > 0, has_ticks, "{repeated}");
    }
}

#[test]
fn the_time_of_ticks_makes_no_other_frames() {
    if !vcc_testing::can_attach() {
        return;
    }
    let transfer = |has_ticks| {
        let mut run = Run::opened(&options(has_ticks));
        (0..50).for_each(|_| run.flight());
        let rtt_us = run.state().srtt_us8 / 8;
        assert!(rtt_us > 0);
        run.frames
    };
    // A busy machine may pause one of them for an RTO.
    assert!((0..10).any(|_| transfer(true) == transfer(false)));
}
