use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use vcc_testing::{Netns, guest};

use super::*;
use crate::pins::Role;
use crate::{TraceEvent, counters};

const WAIT: Duration = Duration::from_secs(10);

/// The guest's end of a connection, and the host's.
fn connect(guest: &Netns) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
    let to = listener.local_addr().expect("an address");
    let here = guest.inside(|| TcpStream::connect(to)).expect("inside").expect("connected");
    (here, listener.accept().expect("accepted").0)
}

fn id(guests_end: &TcpStream) -> FlowId {
    let guest = guests_end.local_addr().expect("an address");
    FlowId { guest, peer: guests_end.peer_addr().expect("an address"), vlan: None, inside: false }
}

/// Sends bytes from the guest to the peer.
fn transfer((here, there): &mut (TcpStream, TcpStream), bytes: usize) {
    thread::scope(|scope| {
        scope.spawn(|| here.write_all(&vec![1; bytes]).expect("sent"));
        there.read_exact(&mut vec![0; bytes]).expect("received");
    });
}

/// Records up to the first event for which `done` holds.
fn record(trace: &mut Trace, done: impl Fn(&TraceEvent) -> bool) -> Vec<TraceEvent> {
    let mut events = Vec::new();
    loop {
        let event = trace.next(WAIT).expect("a trace").expect("an ACK within ten seconds");
        let last = done(&event);
        events.push(event);
        if last {
            return events;
        }
    }
}

fn is_tracing(port: &Port) -> bool {
    port.params().expect("parameters").0.trace != 0
}

#[test]
fn a_trace_follows_one_connection_to_its_last_ack() {
    on_a_host(|| {
        const BYTES: usize = 1 << 20;
        let guest = guest();
        let port = attach();
        let (mut traced, mut other) = (connect(&guest), connect(&guest));
        let before = port.flow(&id(&traced.0)).expect("a look").expect("a flow").state;
        let mut trace = port.trace(Some(id(&traced.0))).expect("a trace");
        transfer(&mut other, BYTES);
        transfer(&mut traced, BYTES);
        transfer(&mut other, BYTES);

        let acked = |event: &TraceEvent| event.flow.state.snd_una.wrapping_sub(before.snd_una);
        let events = record(&mut trace, |event| acked(event) as usize == BYTES);
        assert!(events.iter().all(|event| event.flow.id() == id(&traced.0)));
        assert!(events.is_sorted_by_key(|event| (event.at_us, acked(event))));
        assert_eq!(trace.lost().expect("a counter"), 0);
        // The last event has the state of the flow.
        eventually("the last event is the flow's state", || {
            let now = port.flow(&id(&traced.0)).expect("a look").expect("a flow").state;
            let last = &events.last().expect("an event").flow.state;
            (now.cc, now.snd_nxt, now.window_shown) == (last.cc, last.snd_nxt, last.window_shown)
        });
    });
}

#[test]
fn a_trace_of_the_port_tells_of_every_connection_and_none_after_its_end() {
    on_a_host(|| {
        let guest = guest();
        let port = attach();
        let mut trace = port.trace(None).expect("a trace");
        let (mut one, mut other) = (connect(&guest), connect(&guest));
        transfer(&mut one, 1000);
        transfer(&mut other, 1000);
        let events = record(&mut trace, |event| event.flow.id() == id(&other.0));
        assert!(events.iter().any(|event| event.flow.id() == id(&one.0)));

        trace.stop().expect("stopped");
        while trace.next(Duration::ZERO).expect("a trace").is_some() {}
        transfer(&mut one, 1000);
        assert!(trace.next(Duration::ZERO).expect("a trace").is_none());
        drop(trace);
        // Events from before a trace are discarded.
        port.change_params(|params| params.0.trace = 1).expect("changed");
        transfer(&mut one, 1000);
        port.change_params(|params| params.0.trace = 0).expect("changed");
        let mut trace = port.trace(None).expect("a trace");
        transfer(&mut other, 1000);
        let event = trace.next(WAIT).expect("a trace").expect("an ACK");
        assert_eq!(event.flow.id(), id(&other.0));
    });
}

#[test]
fn what_nobody_takes_is_counted() {
    on_a_host(|| {
        let guest = guest();
        let port = attach();
        let trace = port.trace(None).expect("a trace");
        let mut connection = connect(&guest);
        // Each byte is acknowledged, and the ring buffer has room for about a thousand events.
        connection.0.set_nodelay(true).expect("no delay");
        while trace.lost().expect("a counter") == 0 {
            transfer(&mut connection, 1);
            connection.1.write_all(&[1]).expect("sent");
            connection.0.read_exact(&mut [0]).expect("received");
        }
        let lost = port.counters().expect("counters").get(counters::TRACE_LOST);
        assert_eq!(trace.lost().expect("a counter"), lost);
        assert_eq!(port.counters().expect("counters").get(counters::EVENT_LOST), 0);
    });
}

#[test]
fn one_trace_at_a_time() {
    on_a_host(|| {
        veth();
        let port = attach();
        let second_refused = |port: &Port| {
            let trace = port.trace(None).expect("a trace");
            let message = port.trace(None).err().expect("a refusal").to_string();
            assert!(message.starts_with("another `vcc trace` is running at `port`"), "{message}");
            assert!(is_tracing(port), "the refusal has not ended the first");
            drop(trace);
            assert!(!is_tracing(port));
            drop(port.trace(None).expect("a trace"));
        };
        second_refused(&port);
        drop(port);
        let port = pinned();
        second_refused(&port);
        let trace = port.trace(None).expect("a trace");
        assert!(Port::open(PORT).expect("open").trace(None).is_err());
        drop(port);
        Port::open(PORT).expect("open").detach().expect("detached beside a trace");
        drop(trace);
    });
}

#[test]
fn a_killed_process_leaves_nothing_that_keeps_telling() {
    on_a_host(|| {
        veth();
        let port = pinned();
        let left_on = || {
            port.change_params(|params| params.0.trace = 1).expect("changed");
            assert!(is_tracing(&port));
        };
        left_on();
        Port::sweep().expect("swept");
        assert!(!is_tracing(&port));

        left_on();
        let trace = port.trace(None).expect("a trace in spite of it");
        Port::sweep().expect("swept");
        assert!(is_tracing(&port), "a trace that is alive is left alone");
        drop(trace);
        assert!(!is_tracing(&port));
    });
}

#[test]
fn resuming_keeps_a_trace() {
    on_a_host(|| {
        veth();
        let port = attach();
        let _trace = port.trace(None).expect("a trace");
        let at_once = Params::with(|p| p.prr = 0);
        port.resume(&AttachOptions::from_params(at_once)).expect("resumed");
        assert_eq!(port.params().expect("parameters").0.prr, 0);
        assert!(is_tracing(&port));
    });
}

/// Whoever reads the ports ends the trace of a process that was killed, and is no trace itself.
#[test]
fn a_trace_waits_for_who_ends_an_orphaned_one() {
    on_a_host(|| {
        let _guest = guest();
        let port = attach_pinned(PORT, &AttachOptions::default()).expect("attached");
        let take = || port.pin.as_ref().expect("a pin").take(Role::Tracing).expect("a lock");
        let role = take().expect("no trace");
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(20));
                drop(role);
            });
            let _trace = port.trace(None).expect("a trace");
            assert!(take().is_none());
            let refused = port.trace(None).err().expect("one at a time").to_string();
            assert!(refused.contains("another `vcc trace` is running"), "{refused}");
        });
    });
}

/// Whoever reads the ports may meet one that is detached at that moment: its pin is gone, or another
/// port has its index already.
#[test]
fn a_detached_port_has_no_orphaned_trace() {
    on_a_host(|| {
        let attach_pinned = |device| attach_pinned(device, &AttachOptions::default());
        veth();
        ip("link add stays type veth peer name its-guest");
        attach_pinned("stays").expect("attached");
        let port = attach_pinned(PORT).expect("attached");
        port.change_params(|params| params.0.trace = 1).expect("traced");
        Port::open(PORT).expect("open").detach().expect("detached");
        assert!(is_tracing(&port), "no port has the index yet");
        port.end_orphaned_trace().expect("none");
        attach_pinned(PORT).expect("attached");
        assert!(port.params().is_err(), "the next port has the index");
        port.end_orphaned_trace().expect("none");
    });
}
