//! A guest with two devices: `port`, by which the peer reaches it, and `second`, by which it answers.

use vcc_policy::Order;
use vcc_testing::{Netns, add_second_device, guest};

use super::talk::Talk;
use super::*;
use crate::{Host, Predecessor};

const SECOND: &str = "second";
/// Of the peer, which the guest reaches by its second device and no other.
const ROUNDABOUT: &str = "203.0.113.1:0";
const BY_FIRST: &str = "192.0.2.2:0";
const BY_SECOND: &str = "198.51.100.2:0";

fn guest_with_two() -> Netns {
    let guest = guest();
    ip("link set lo up");
    ip("address add 203.0.113.1/32 dev lo");
    add_second_device(&guest);
    guest
}

/// Nothing passes that the port does not know.
fn policing() -> AttachOptions {
    AttachOptions::from_params(Params::with(|p| {
        p.police = 1;
        p.unknown_grace_s = 0;
    }))
}

fn join_pinned(port: &Port) -> Port {
    port.join(&[SECOND], Order::default()).expect("joined").remove(0)
}

fn both_pinned(options: &AttachOptions) -> [Port; 2] {
    let port = attach_pinned(PORT, options).expect("attached");
    let second = join_pinned(&port);
    [port, second]
}

fn counted(port: &Port, counter: crate::Counter) -> u64 {
    port.counters().expect("counters").get(counter)
}

fn why(result: Result<Vec<Port>>) -> String {
    result.err().expect("refused").to_string()
}

#[test]
fn a_connection_that_passes_both_devices_is_of_one_port() {
    on_a_host(|| {
        let guest = guest_with_two();
        // Of two ports, neither knows what the guest may send.
        let alone = [PORT, SECOND].map(|device| attach_pinned(device, &policing()));
        Talk::at(&guest, ROUNDABOUT).says_in_vain();
        for port in alone {
            port.expect("attached").detach().expect("detached");
        }

        let [port, second] = both_pinned(&policing());
        Talk::at(&guest, ROUNDABOUT).goes_on();
        for counter in [counters::ONE_DIRECTION, counters::UNKNOWN, counters::UNKNOWN_DROPPED] {
            assert_eq!(counted(&port, counter), 0, "{}", counter.name);
        }
        assert_eq!(second.counters().expect("counters"), port.counters().expect("counters"));
        let message = |port: &Port| (port.number(), port.usage().expect("usage"));
        assert_eq!(message(&port), message(&second));
        assert_eq!(second.params().expect("parameters"), policing().params);

        // Each connection is listed once.
        let listed = Port::list().expect("a list");
        let message = |port: &Port| {
            (port.device().to_owned(), port.others().to_vec(), port.shown_at().map(str::to_owned))
        };
        let expected = [
            (PORT.to_owned(), vec![SECOND.to_owned()], None),
            (SECOND.to_owned(), vec![PORT.to_owned()], Some(PORT.to_owned())),
        ];
        assert_eq!(listed.iter().map(message).collect::<Vec<_>>(), expected);
        let flows = Port::flows_of_all(&listed.iter().collect::<Vec<_>>()).expect("flows");
        assert_eq!(flows.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0]);
        let opened = Port::open(SECOND).expect("open");
        assert_eq!((opened.flows().expect("flows").len(), opened.shown_at()), (1, None));
    });
}

/// Either device: the one that was attached first, or the other.
#[test]
fn one_device_of_two_is_detached() {
    on_a_host(|| {
        let guest = guest_with_two();
        for (gone, stays, address) in [(PORT, SECOND, BY_SECOND), (SECOND, PORT, BY_FIRST)] {
            both_pinned(&policing());
            let mut talk = Talk::at(&guest, address);
            talk.goes_on();
            let forgotten = Port::open(gone).expect("open").detach().expect("detached");
            assert_eq!((forgotten, program_ids(gone).len()), (0, 0), "{gone}");
            talk.goes_on();
            let port = Port::open(stays).expect("open");
            assert_eq!((port.usage().expect("usage").flows, port.others()), (1, &[][..]));
            Talk::at(&guest, address).goes_on();
            assert_eq!(counted(&port, counters::UNKNOWN_DROPPED), 0);
            assert!(port.detach().expect("detached") > 0);
            assert_eq!(pinned_files(), Vec::<PathBuf>::new());
        }
    });
}

#[test]
fn one_device_of_two_disappears_and_comes_again() {
    on_a_host(|| {
        let guest = guest_with_two();
        let [port, second] = both_pinned(&policing());
        let number = port.number();
        let mut talk = Talk::at(&guest, BY_FIRST);
        drop((port, second));
        ip("link delete second");
        assert_eq!(Port::sweep().expect("swept"), [SECOND]);
        talk.goes_on();
        let port = Port::open(PORT).expect("open");
        assert_eq!((port.usage().expect("usage").flows, port.others()), (1, &[][..]));

        ip("link add other type veth peer name its-guest");
        let other = attach_pinned("other", &AttachOptions::default()).expect("attached");
        assert_ne!(other.number(), number, "the index is in use");
        add_second_device(&guest);
        assert_eq!(join_pinned(&port).number(), number);
        Talk::at(&guest, ROUNDABOUT).goes_on();
        talk.goes_on();

        // The one that was attached first.
        ip("link delete port");
        assert_eq!(Port::sweep().expect("swept"), [PORT]);
        let second = Port::open(SECOND).expect("open");
        assert!(second.is_attached().expect("read"));
        assert_eq!((second.number(), second.usage().expect("usage").flows), (number, 2));
        ip("link delete second");
        assert_eq!(Port::sweep().expect("swept"), [SECOND]);
        let next = attach_pinned("its-guest", &AttachOptions::default()).expect("attached");
        assert_eq!((next.number(), next.usage().expect("usage").flows), (number, 0));
    });
}

#[test]
fn a_device_joins_while_there_are_connections() {
    on_a_host(|| {
        let guest = guest_with_two();
        let port = attach_pinned(PORT, &policing()).expect("attached");
        let mut talk = Talk::at(&guest, BY_FIRST);
        talk.goes_on();
        // Of the second device, the port knows no connection.
        let mut older = Talk::at(&guest, BY_SECOND);
        port.change_params(|params| params.0.unknown_grace_s = 300).expect("changed");
        port.change(|port| port.attached_s = 1).expect("changed");
        let left_s = || port.unknown_dropped_in_s(None).expect("read").expect("it polices");

        ip("link add unready type veth peer name its-guest");
        let message = why(port.join(&[SECOND, "unready", "missing"], Order::default()));
        assert!(message.starts_with("no network device `missing`"), "{message}");
        for device in [SECOND, "unready"] {
            assert!(program_ids(device).is_empty(), "all of them or none: {device}");
        }
        port.change(|port| port.attached_s = 1).expect("changed");
        assert!(why(port.join(&["missing"], Order::default())).contains("missing"));
        assert_eq!(port.settings().expect("read").attached_s, 1, "nothing has come to the port");

        join_pinned(&port);
        assert!((1..=300).contains(&left_s()), "{}", left_s());
        older.goes_on();
        talk.goes_on();
        Talk::at(&guest, ROUNDABOUT).goes_on();
        assert_eq!(counted(&port, counters::UNKNOWN_DROPPED), 0);
    });
}

#[test]
fn refusals() {
    on_a_host(|| {
        let _guest = guest_with_two();
        let port = attach_pinned(PORT, &AttachOptions::default()).expect("attached");
        let join = |device| why(port.join(&[device], Order::default()));
        for device in [PORT, "lo"] {
            let message = join(device);
            assert!(message.contains(&format!("`{device}`")), "{message}");
        }
        let mut alone = attach_pinned(SECOND, &AttachOptions::default()).expect("attached");
        let message = "vcc is already attached to `second`: `vcc set second` changes its treatment, and `vcc detach second` ends it";
        assert_eq!(join(SECOND), message, "a port of its own, perhaps with connections");
        alone.detach().expect("detached");
        alone = join_pinned(&port);
        assert_eq!(join(SECOND), message);
        alone.detach().expect("detached");

        port.drain().expect("drains");
        let message = "`port` is draining, so no other device joins it: `vcc attach port` first";
        assert_eq!(join(SECOND), message);
        Port::open(PORT).expect("open").detach().expect("detached");
        let message = "vcc is not attached to `port` (`vcc ports` lists where it is attached)";
        assert_eq!(join(SECOND), message);
        attach_pinned(PORT, &AttachOptions::default()).expect("attached");
        assert_eq!(join(SECOND), message, "that is another attachment");
        assert!(program_ids(SECOND).is_empty());
    });
}

/// By newer programs, and by another version's maps.
#[test]
fn an_upgrade_takes_both_devices_over() {
    on_a_host(|| {
        let guest = guest_with_two();
        both_pinned(&policing());
        let mut talk = Talk::at(&guest, ROUNDABOUT);
        talk.goes_on();
        assert!(Host::open().expect("a host").take_over_if(|_, _| true).expect("replaced").1);
        for mut port in Port::list().expect("a list") {
            assert!(port.renew_if(|_, _| true).expect("renewed"));
        }
        talk.goes_on();
        Host::make_foreign(true).expect("foreign");
        let inherited = Predecessor::succeed(|_, _| Ok(())).expect("taken over");
        let ports = inherited.iter().map(|port| (&*port.device, port.connections, port.lost));
        assert_eq!(ports.collect::<Vec<_>>(), [(PORT, 1, 0), (SECOND, 0, 0)]);
        talk.goes_on();
        Talk::at(&guest, ROUNDABOUT).goes_on();
        let port = Port::open(PORT).expect("open");
        assert_eq!((port.usage().expect("usage").flows, port.others()), (2, &[SECOND.into()][..]));
        assert_eq!(counted(&port, counters::UNKNOWN_DROPPED), 0);
    });
}

#[test]
fn a_port_of_this_process_ends_with_its_last_device() {
    on_a_host(|| {
        let guest = guest_with_two();
        let port = Port::attach(PORT, &policing()).expect("attached");
        let second = join_pinned(&port);
        Talk::at(&guest, ROUNDABOUT).goes_on();
        let mut talk = Talk::at(&guest, BY_SECOND);
        drop(port);
        assert!(program_ids(PORT).is_empty());
        talk.goes_on();
        assert!(second.detach().expect("detached") > 0);
        assert!(program_ids(SECOND).is_empty());
    });
}

/// A trace, and what sends to the guest, is of the port, and not of a device.
#[test]
fn one_process_at_a_time_for_both_devices() {
    on_a_host(|| {
        let guest = guest_with_two();
        let options = AttachOptions::from_params(Params::with(|p| p.emit = 1));
        let [port, second] = both_pinned(&options);
        let mut trace = port.trace(None).expect("a trace");
        let message = second.trace(None).err().expect("one at a time").to_string();
        assert!(message.contains("another `vcc trace` is running at `second`"), "{message}");
        Talk::at(&guest, ROUNDABOUT).goes_on();
        assert!(trace.next(Duration::from_secs(10)).expect("read").is_some(), "both directions");
        let _emitter = port.emitter().expect("an emitter");
        let message = second.emitter().err().expect("one at a time").to_string();
        assert!(message.contains("another `vcc emit` is running at `second`"), "{message}");
        port.detach().expect("detached");
        assert!(second.emitter().is_err(), "it still runs for the other device");
        drop(trace);
        second.trace(None).expect("a trace");
    });
}
