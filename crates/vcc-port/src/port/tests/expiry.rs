use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use vcc_engine::Params;
use vcc_frames::Packet;
use vcc_testing::{can_attach, guest, on_a_host};

use super::eventually;
use crate::{AttachOptions, Datapath, Port, Program, counters};

#[test]
fn the_kernel_forgets_flows_that_fell_silent() {
    on_a_host(|| {
        let guest = guest();
        let params = Params::with(|p| {
            p.idle_closed_ms = 500;
            p.idle_established_ms = 2000;
        });
        let port = Port::attach("port", &AttachOptions::of(params)).expect("attached");
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
        // The connection continues, untranslated.
        idle.write_all(b"still here").expect("sent");
        assert_eq!(count(), 0);
    });
}

/// Closing a connection brings its expiry forward, which was far away before.
#[test]
fn a_connection_that_was_idle_for_long_is_forgotten_once_it_closes() {
    on_a_host(|| {
        let guest = guest();
        let params = Params::with(|p| p.idle_closed_ms = 1000);
        let port = Port::attach("port", &AttachOptions::of(params)).expect("attached");
        let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
        let to = listener.local_addr().expect("an address");
        let opened = guest.inside(|| TcpStream::connect(to)).expect("inside").expect("connected");
        let accepted = listener.accept().expect("accepted");
        // The timer's second look finds it idle, and schedules the next one days later.
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

/// In a flood of as many SYNs as the table has entries, most are evicted and the others expire.
#[test]
fn a_flood_of_syns_is_forgotten() {
    if !can_attach() {
        return;
    }
    let options = AttachOptions::default();
    let datapath = Datapath::load(&options).expect("a datapath");
    let usage = || datapath.usage().expect("usage");
    for number in 0..options.max_flows {
        let [.., a, b] = number.to_be_bytes();
        let from = ([198, 51, 100, a], 1024 + u16::from(b)).into();
        let syn = Packet::syn(from, ([192, 0, 2, 1], 80).into());
        datapath.run(Program::ToGuest, &syn.frame(), 0).expect("it runs");
    }
    assert_eq!(usage().flows, options.max_flows / 4);
    let counted = datapath.counters().expect("counters");
    assert_eq!(counted.get(counters::GAVE_WAY), u64::from(options.max_flows * 3 / 4));
    eventually("those that nobody answered", || usage().flows < options.max_flows / 4);
    eventually("are forgotten", || usage().flows == 0);
    println!("{:?}", usage());
    assert!(datapath.flows().expect("flows").is_empty());
}

/// How many seconds connections are opened and closed. `make verify` sets minutes.
const SECONDS: &str = "VCC_EXPIRY_SECONDS";
const CONNECTIONS_A_SECOND: u32 = 1000;

/// A rate at which leftover flows would be noticed.
#[test]
fn connections_at_a_high_rate_are_all_forgotten() {
    on_a_host(|| open_and_close(false));
}

#[test]
fn so_are_those_of_a_port_that_emits() {
    on_a_host(|| open_and_close(true));
}

fn open_and_close(emit: bool) {
    let guest = guest();
    let params = Params::with(|p| p.emit = emit.into());
    let port = Port::attach("port", &AttachOptions::of(params)).expect("attached");
    let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
    let to = listener.local_addr().expect("an address");
    let usage = || port.usage().expect("usage");
    let seconds = std::env::var(SECONDS).map_or(1, |text| text.parse().expect(SECONDS));
    let mut most_flows = 0;
    let begin = Instant::now();
    for second in 0..seconds {
        let opened = guest.inside(|| {
            for _ in 0..CONNECTIONS_A_SECOND {
                let opened = TcpStream::connect(to).expect("connected");
                let mut accepted = listener.accept().expect("accepted").0;
                accepted.write_all(b"a response").expect("sent");
                drop((opened, accepted));
            }
        });
        opened.expect("inside");
        most_flows = most_flows.max(usage().flows);
        thread::sleep(Duration::from_secs(second + 1).saturating_sub(begin.elapsed()));
    }
    let took = begin.elapsed();
    // The idle limit, and five seconds.
    let closed_ms = u64::from(Params::default().0.idle_closed_ms);
    let deadline = Instant::now() + Duration::from_millis(closed_ms + 5000);
    while usage().flows > 0 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(50));
    }
    let left = usage();
    println!(
        "emit {emit}: {} connections in {took:.1?}, at most {most_flows} in the table, {} left {:.1?} \
         after the last, longest turn {} us",
        seconds * u64::from(CONNECTIONS_A_SECOND),
        left.flows,
        begin.elapsed() - took,
        left.turn_longest_us
    );
    assert_eq!((left.flows, left.half_open), (0, 0));
    assert!(port.flows().expect("flows").is_empty());
    let counted = port.counters().expect("counters");
    for counter in [counters::TABLE_FULL, counters::UNTIMED, counters::TIMER_LATE] {
        assert_eq!(counted.get(counter), 0, "{}", counter.name);
    }
}
