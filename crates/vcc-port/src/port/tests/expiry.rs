use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use vcc_engine::Params;
use vcc_frames::Packet;
use vcc_frames::wire::*;
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
        let port = Port::attach("port", &AttachOptions::from_params(params)).expect("attached");
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
        // The connection continues, and is known again.
        idle.write_all(b"still here").expect("sent");
        eventually("the idle connection is revived", || count() == 1);
        let revived = port.flows().expect("flows").remove(0).state;
        assert_ne!(revived.wscale_shown, revived.wscale_peer, "its guest was shown another scale");
        assert_eq!(port.counters().expect("counters").get(counters::REVIVED), 1);
    });
}

/// Closing a connection brings its expiry forward, which was far away before.
#[test]
fn a_connection_that_was_idle_for_long_is_forgotten_once_it_closes() {
    on_a_host(|| {
        let guest = guest();
        let params = Params::with(|p| p.idle_closed_ms = 1000);
        let port = Port::attach("port", &AttachOptions::from_params(params)).expect("attached");
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

/// Connections that end soon take no more than half of the table for long, however long closed ones
/// may stay: also those that had not been closed for a second when the timer first looked.
#[test]
fn what_has_ended_leaves_a_crowded_table() {
    if !can_attach() {
        return;
    }
    const MAX_FLOWS: u32 = 64;
    let params = Params::with(|p| p.idle_closed_ms = 600_000);
    let options = AttachOptions { max_flows: MAX_FLOWS, ..AttachOptions::from_params(params) };
    let datapath = Datapath::load(&options).expect("a datapath");
    let flows = || datapath.usage().expect("usage").flows;
    let peer = ([192, 0, 2, 1], 80).into();
    let run = |program, packet: Packet| {
        datapath.run(program, &packet.frame(), 0).expect("it runs");
    };
    let open = |port: u16| -> SocketAddr {
        let guest = ([198, 51, 100, 1], port).into();
        run(Program::FromGuest, Packet::syn(guest, peer));
        let syn_ack = Packet { flags: SYN | ACK, ack: 1, ..Packet::new(peer, guest) };
        run(Program::ToGuest, syn_ack);
        run(Program::FromGuest, Packet { seq: 1, ack: 1, ..Packet::new(guest, peer) });
        guest
    };
    let stays = open(1);
    let guests: Vec<_> = (2..=MAX_FLOWS as u16).map(open).collect();
    thread::sleep(Duration::from_millis(500));
    for guest in guests {
        run(Program::FromGuest, Packet { seq: 1, flags: RST, ..Packet::new(guest, peer) });
    }
    assert_eq!(flows(), MAX_FLOWS);
    eventually("those that have ended leave half of it", || flows() <= MAX_FLOWS / 2);
    assert!(datapath.flows().expect("flows").iter().any(|flow| flow.guest == stays));
}

/// How many seconds connections are opened and closed, at the default settings. `make verify` sets
/// minutes.
const SECONDS: &str = "VCC_EXPIRY_SECONDS";
/// A closed connection is forgotten within its idle time and five seconds.
const LATEST_MS: u32 = 5000;
/// Connections that are open all the time.
const IDLE: u32 = 50;

struct Load {
    seconds: u64,
    connections_a_second: u32,
    idle_closed_ms: u32,
}

impl Load {
    fn wanted() -> Self {
        let idle_closed_ms = Params::default().0.idle_closed_ms;
        match std::env::var(SECONDS) {
            Ok(seconds) => {
                let seconds = seconds.parse().expect(SECONDS);
                Self { seconds, connections_a_second: 1000, idle_closed_ms }
            }
            // Short, and long enough for more connections than may be left.
            Err(_) => Self { seconds: 7, connections_a_second: 250, idle_closed_ms: 500 },
        }
    }

    fn most_flows(&self) -> u32 {
        IDLE + self.connections_a_second * (self.idle_closed_ms + LATEST_MS) / 1000
    }
}

/// A rate at which leftover flows would be noticed.
#[test]
fn connections_at_a_high_rate_are_all_forgotten() {
    on_a_host(|| open_and_close(false));
}

#[test]
fn so_are_those_of_a_port_that_emits() {
    on_a_host(|| open_and_close(true));
}

/// The socket's end will be a RST.
fn reset_at_end(stream: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let bytes = size_of::<libc::linger>() as libc::socklen_t;
    // SAFETY: an open socket, and a structure of the size given.
    let status = unsafe {
        let value = (&raw const linger).cast();
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, value, bytes)
    };
    assert_eq!(status, 0);
}

fn open_and_close(emit: bool) {
    let load = Load::wanted();
    let guest = guest();
    let params = Params::with(|p| {
        p.emit = emit.into();
        p.idle_closed_ms = load.idle_closed_ms;
    });
    let port = Port::attach("port", &AttachOptions::from_params(params)).expect("attached");
    let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
    let to = listener.local_addr().expect("an address");
    let usage = || port.usage().expect("usage");
    let open = || {
        let opened = TcpStream::connect(to).expect("connected");
        (opened, listener.accept().expect("accepted").0)
    };
    let idle: Vec<_> = guest.inside(|| (0..IDLE).map(|_| open()).collect()).expect("inside");
    let mut most_flows = 0;
    let begin = Instant::now();
    for second in 0..load.seconds {
        let opened = guest.inside(|| {
            for number in 0..load.connections_a_second {
                let (opened, mut accepted) = open();
                accepted.write_all(b"a response").expect("sent");
                // Three in four end by a FIN of each end, the guest's or the host's first.
                match number % 8 {
                    0 => reset_at_end(&opened),
                    1 => reset_at_end(&accepted),
                    2..=4 => drop(opened),
                    _ => drop(accepted),
                }
            }
        });
        opened.expect("inside");
        most_flows = most_flows.max(usage().flows);
        thread::sleep(Duration::from_secs(second + 1).saturating_sub(begin.elapsed()));
    }
    let took = begin.elapsed();
    drop(idle);
    let deadline = Instant::now() + Duration::from_millis((load.idle_closed_ms + LATEST_MS).into());
    while usage().flows > 0 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(50));
    }
    let left = usage();
    println!(
        "figure: emit {emit}: {} connections in {took:.1?}, at most {most_flows} in the table, {} left {:.1?} \
         after the last, longest turn {} us",
        load.seconds * u64::from(load.connections_a_second),
        left.flows,
        begin.elapsed() - took,
        left.turn_longest_us
    );
    assert!(most_flows <= load.most_flows(), "{most_flows} of {}", load.most_flows());
    assert_eq!((left.flows, left.half_open), (0, 0));
    assert!(port.flows().expect("flows").is_empty());
    let counted = port.counters().expect("counters");
    for counter in [counters::TABLE_FULL, counters::UNTIMED, counters::TIMER_LATE] {
        assert_eq!(counted.get(counter), 0, "{}", counter.name);
    }
}
