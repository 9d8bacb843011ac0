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
        let sent = || {
            let before = port.run_time().expect("a time");
            let send = || {
                let socket = UdpSocket::bind("192.0.2.1:0").expect("a socket");
                for _ in 0..DATAGRAMS {
                    socket.send_to(b"x", "192.0.2.2:9").expect("sent");
                }
            };
            guest.inside(send).expect("inside");
            port.run_time().expect("a time") - before
        };
        let counting = RunTimes::count().expect("counting");
        let counted = sent();
        assert!(counted.runs >= DATAGRAMS, "{counted:?}");
        assert!(counted.ns > counted.runs, "less than a nanosecond each: {counted:?}");
        drop(counting);
    });
}
