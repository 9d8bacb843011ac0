use std::io::Write;
use std::net::{TcpListener, TcpStream};

use vcc_engine::Treatment;

use super::eventually;
use crate::testing::{guest, on_a_host};
use crate::{AttachOptions, Port};

#[test]
fn the_kernel_forgets_flows_that_fell_silent() {
    on_a_host(|| {
        let guest = guest();
        let treatment =
            Treatment { closed_idle_ms: 500, established_idle_ms: 2000, ..Treatment::default() };
        let port = Port::attach("port", &AttachOptions::of(treatment)).expect("attached");
        let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
        let to = listener.local_addr().expect("an address");
        let connect =
            || guest.inside(|| TcpStream::connect(to)).expect("inside").expect("connected");
        let (closing, mut idle) = (connect(), connect());
        let count = || port.flows().expect("flows").len();
        assert_eq!(count(), 2);

        drop(closing);
        drop(listener.accept().expect("accepted"));
        eventually("the closed connection is forgotten", || count() == 1);
        eventually("the idle connection is forgotten", || count() == 0);
        // It goes on all the same, unknown.
        idle.write_all(b"still here").expect("sent");
        assert_eq!(count(), 0);
    });
}
