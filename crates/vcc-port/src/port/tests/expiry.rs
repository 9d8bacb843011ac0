use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use vcc_engine::Treatment;

use super::eventually;
use crate::testing::{guest, on_a_host};
use crate::{AttachOptions, Port, counters};

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

/// Its end was far off when it was last looked at, and comes near when it closes.
#[test]
fn a_connection_that_was_idle_for_long_is_forgotten_once_it_closes() {
    on_a_host(|| {
        let guest = guest();
        let treatment = Treatment { closed_idle_ms: 1000, ..Treatment::default() };
        let port = Port::attach("port", &AttachOptions::of(treatment)).expect("attached");
        let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
        let to = listener.local_addr().expect("an address");
        let opened = guest.inside(|| TcpStream::connect(to)).expect("inside").expect("connected");
        let accepted = listener.accept().expect("accepted");
        // The second look is the one that finds it idle and plans the next for days later.
        thread::sleep(Duration::from_millis(2500));
        assert_eq!(port.usage().expect("usage").flows, 1);
        drop(accepted);
        drop(opened);
        eventually("the closed connection is forgotten", || {
            port.usage().expect("usage").flows == 0
        });
        assert!(port.flows().expect("flows").is_empty());
    });
}

/// More at once than the kernel makes timers for.
#[test]
fn a_thousand_connections_at_once_are_all_forgotten() {
    const CONNECTIONS: usize = 1000;
    on_a_host(|| {
        let guest = guest();
        let treatment = Treatment { closed_idle_ms: 1000, ..Treatment::default() };
        let port = Port::attach("port", &AttachOptions::of(treatment)).expect("attached");
        let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
        let to = listener.local_addr().expect("an address");
        let opened = guest.inside(|| {
            for _ in 0..CONNECTIONS {
                let opened = TcpStream::connect(to).expect("connected");
                let accepted = listener.accept().expect("accepted");
                drop(opened);
                drop(accepted);
            }
        });
        opened.expect("inside");
        eventually("they are forgotten", || port.usage().expect("usage").flows == 0);
        assert!(port.flows().expect("flows").is_empty());
        let counted = port.counters().expect("counters");
        for counter in [counters::TABLE_FULL, counters::UNTIMED, counters::TIMER_LATE] {
            assert_eq!(counted.get(counter), 0, "{}", counter.name);
        }
    });
}
