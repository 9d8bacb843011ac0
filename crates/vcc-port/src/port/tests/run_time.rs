use std::net::UdpSocket;

use vcc_testing::guest;

use super::*;
use crate::RunTimes;

#[test]
fn time_is_counted_while_somebody_asks_for_it() {
    if !can_attach() {
        return;
    }
    const DATAGRAMS: u64 = 100;
    isolated(|| {
        let guest = guest();
        let port = attach();
        let bytes = port.seat().expect("a seat").host.tables_bytes().expect("a size");
        assert!((1 << 16..1 << 30).contains(&bytes), "{bytes} bytes");
        let sent = || {
            let before = port.run_time_by_direction().expect("a time");
            let send = || {
                let socket = UdpSocket::bind("192.0.2.1:0").expect("a socket");
                for _ in 0..DATAGRAMS {
                    socket.send_to(b"x", "192.0.2.2:9").expect("sent");
                }
            };
            guest.inside(send).expect("inside");
            let after = port.run_time_by_direction().expect("a time");
            [after.from_guest - before.from_guest, after.to_guest - before.to_guest]
        };
        let counting = RunTimes::count().expect("counting");
        let [counted, other] = sent();
        assert!(other.runs < DATAGRAMS, "the guest gets none: {other:?}");
        assert!(counted.runs >= DATAGRAMS, "{counted:?}");
        assert!(counted.ns > counted.runs, "less than a nanosecond each: {counted:?}");
        drop(counting);
    });
}
