//! The rate of all connections of a guest (engine/guest_rate.h), in both shells.

use vcc_engine::Params;
use vcc_frames::payload;
use vcc_port::counters;

use crate::conversation::{Connection, MSS_BYTES, Shape};
use crate::direction::Direction::FromGuest;
use crate::direction::{DROP, NEXT};
use crate::domain::Domain;
use crate::loaded::Loaded;
use crate::setup::{now_us, usually};

/// A byte in a millisecond, so that what passes is the burst.
const BYTES_PER_MS: u32 = 1;
/// As many as find something left of 65,536 bytes.
const BURST_SEGS: usize = 46;

#[test]
fn the_connections_of_a_guest_share_a_burst() {
    if !vcc_testing::can_attach() {
        return;
    }
    let options = usually(Params::with(|p| {
        p.police = 1;
        p.guest_rate_cap_bytes_per_ms = BYTES_PER_MS;
    }));
    let port = Loaded::without_timer(&options);
    let mut domain = Domain::new(&options);
    let mut passed = 0;
    for guest_port in 20_000..20_008 {
        let shape = Shape { ipv6: guest_port % 2 == 0, ..Shape::plain(FromGuest) };
        let mut connection = Connection::new(shape, guest_port);
        let send = |domain: &mut Domain, from, packet: &vcc_frames::Packet| {
            let frame = packet.frame();
            let theirs = domain.send("", from, now_us(), &frame, 0);
            let output = port.run(from.program(), &frame, 0).expect("it runs");
            let dropped = output.return_value == DROP;
            assert_eq!(theirs.verdict == vcc_domain::Verdict::Drop, dropped, "{shape:?}");
            assert!(dropped || output.return_value == NEXT);
            !dropped
        };
        let syn = connection.syn();
        assert!(send(&mut domain, FromGuest, &syn));
        connection.sent(FromGuest, &syn);
        let syn_ack = connection.syn_ack();
        assert!(send(&mut domain, FromGuest.other(), &syn_ack));
        connection.sent(FromGuest.other(), &syn_ack);
        let ack = connection.packet(FromGuest);
        assert!(send(&mut domain, FromGuest, &ack), "no data");
        for _ in 0..9 {
            let mut data = connection.packet(FromGuest);
            data.payload = payload(MSS_BYTES);
            passed += usize::from(send(&mut domain, FromGuest, &data));
            connection.sent(FromGuest, &data);
        }
    }
    assert_eq!(passed, BURST_SEGS);
    let policed = port.counters().expect("counters").get(counters::POLICED);
    assert_eq!(policed as usize, 8 * 9 - BURST_SEGS);
}
