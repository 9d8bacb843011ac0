//! Windows below one segment (engine/pacing.h): the ACK that admits the next segment has a departure time,
//! for the device's queueing discipline.

use vcc_engine::{Params, sys};
use vcc_frames::{Packet, payload};

use crate::conversation::{Connection, MSS_BYTES, Shape};
use crate::direction::Direction::{self, FromGuest, ToGuest};
use crate::loaded::Loaded;
use crate::setup::{now_us, usually};

struct Run {
    datapath: Loaded,
    connection: Connection,
}

impl Run {
    fn opened(floor_segs: u32) -> Self {
        let params = Params::with(|p| {
            p.underlay = sys::UNDERLAY_swift as u8;
            p.window_floor_segs = floor_segs;
            // Every round trip is above it.
            p.rtt_target_us = 1;
        });
        let connection = Connection::new(Shape::plain(FromGuest), 40_000);
        let mut it = Self { datapath: Loaded::without_timer(&usually(params)), connection };
        it.send(FromGuest, it.connection.syn());
        it.send(ToGuest, it.connection.syn_ack());
        it.send(FromGuest, it.connection.packet(FromGuest));
        it
    }

    /// When the segment departs; 0: at once.
    fn send(&mut self, from: Direction, packet: Packet) -> u64 {
        let output = self.datapath.run(from.program(), &packet.frame(), 0).expect("it runs");
        self.connection.sent(from, &packet);
        output.departs_ns
    }

    /// A window, and its ACK after a while.
    fn round(&mut self) -> u64 {
        for _ in 0..self.datapath.flows().expect("flows")[0].state.cc.cwnd_segs {
            let data = self.connection.packet(FromGuest);
            let departs_ns = self.send(FromGuest, Packet { payload: payload(MSS_BYTES), ..data });
            assert_eq!(departs_ns, 0, "what the guest sends does not wait");
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
        self.send(ToGuest, self.connection.packet(ToGuest))
    }
}

#[test]
fn acks_of_a_window_below_one_segment_depart_later() {
    if !vcc_testing::can_attach() {
        return;
    }
    for floor_segs in [0, 1] {
        let mut run = Run::opened(floor_segs);
        let mut later = 0;
        for _ in 0..60 {
            let departs_ns = run.round();
            let now_ns = now_us() * 1000;
            // A machine that is busy may come here after the time, but not before the ACK.
            later += u32::from(departs_ns > 0);
            assert!(departs_ns < now_ns + 50_000_000, "in {} ns", departs_ns - now_ns);
        }
        assert_eq!(later > 0, floor_segs == 0, "{later} of 60");
    }
}
