//! Usual segments that get the time of the kernel's last tick (engine/clock.h) leave as if they had
//! their own.

use vcc_engine::{FlowState, Params};
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

    /// Flights and their ACKs. Returns how many segments of data have the time of the one before.
    fn transfer(&mut self, flights: u32) -> u32 {
        let mut repeated = 0;
        for _ in 0..flights {
            let mut sent_us = self.state().sent_us;
            for _ in 0..FLIGHT_SEGS {
                let data = self.connection.packet(FromGuest);
                self.send(FromGuest, Packet { payload: payload(MSS_BYTES), ..data });
                let state = self.state();
                repeated += u32::from(state.sent_us == sent_us);
                sent_us = state.sent_us;
            }
            for missing in (0..FLIGHT_SEGS).rev() {
                let mut ack = self.connection.packet(ToGuest);
                ack.ack = ack.ack.wrapping_sub(missing * MSS_BYTES as u32);
                self.send(ToGuest, ack);
            }
        }
        repeated
    }
}

#[test]
fn the_time_of_ticks_makes_no_other_frames() {
    if !vcc_testing::can_attach() {
        return;
    }
    let ticks = AttachOptions { params: Params::default(), ..usual() };
    let exact = usually(Params::default());
    let [(at_ticks, by_ticks), (exactly, by_time)] = [ticks, exact].map(|options| {
        let mut run = Run::opened(&options);
        let repeated = run.transfer(100);
        (repeated, run)
    });
    // How many depends on the machine, which may be slow, but two times of its clock differ.
    assert!(at_ticks > 100, "{at_ticks}");
    assert_eq!(exactly, 0);
    assert!(by_ticks.frames == by_time.frames);
    let seen = |state: FlowState| (state.cc.cwnd_segs, state.right_edge, state.snd_una);
    assert_eq!(seen(by_ticks.state()), seen(by_time.state()));
    let rtt_us = by_ticks.state().srtt_us8 / 8;
    assert!(rtt_us > 0 && rtt_us < 100_000, "{rtt_us}");
}
