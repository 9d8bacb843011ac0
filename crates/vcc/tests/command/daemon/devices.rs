//! Devices appear, are renamed and vanish.

use std::fs;

use vcc_port::{Netns, Port, SharedPolicy};
use vcc_testing::{eventually, guest, ip, on_a_host};

use super::{POLICY, Place};
use crate::vcc;
use crate::wire::{connect, exchange};

#[test]
fn devices_come_and_go() {
    on_a_host(|| {
        let place = Place::new("devices", POLICY);
        ip("link add port1 type veth peer name guest1");
        let daemon = place.run();
        daemon.wait_for_log("port1: attached, port 0, of tenant acme");
        daemon.wait_for_log("1 port under ");
        ip("link add port2 type veth peer name guest2");
        daemon.wait_for_log("port2: attached, port 1");
        ip("link add other type veth peer name guest3");
        ip("link set other name port3");
        daemon.wait_for_log("port3: attached, port 2");
        ip("link set port2 name port9");
        daemon.wait_for_log("port9 was renamed; its name was port2");
        assert_eq!(
            place.ports(),
            [("port1".to_owned(), 0), ("port9".to_owned(), 1), ("port3".to_owned(), 2)]
        );
        ip("link delete port1");
        daemon.wait_for_log("port1 is gone");
        ip("link add port4 type veth peer name guest4");
        daemon.wait_for_log("port4: attached, port 0");
        let mut pinned: Vec<String> =
            Port::list().expect("a list").iter().map(|port| port.device().to_owned()).collect();
        pinned.sort();
        assert_eq!(pinned, ["port3", "port4", "port9"], "the gone one's pins are gone");
    });
}

#[test]
fn devices_of_one_guest_are_one_port() {
    on_a_host(|| {
        let apart = "[[ports]]\ndevice = \"port*\"\n[default]\nunderlay = \"dctcp\"\npolice = true\n\
                     guest_ecn = \"override\"\nunknown_grace = \"0s\"\n";
        let together = apart.replace("\"port*\"", "\"port*\"\nguest = \"web\"");
        let place = Place::new("guests", &together);
        let guest = guest();
        ip("link add port2 type veth peer name guest2");
        let daemon = place.run();
        daemon.wait_for_log("port: attached, port 0, of guest web");
        daemon.wait_for_log("port2: attached, port 0, of guest web");
        let (mut one, mut other) = connect(&guest);
        exchange(&mut one, &mut other);
        let both = [("port".to_owned(), 0), ("port2".to_owned(), 0)];
        assert_eq!(place.ports(), both);
        let complaint = place.vcc("attach another --same-guest-as port").complaint(1);
        assert!(complaint.contains("set the same `guest` in the [[ports]] of both"), "{complaint}");

        // A device that comes again joins it, and so does the next daemon.
        ip("link delete port2");
        daemon.wait_for_log("port2 is gone; its guest has other devices");
        ip("link add port2 type veth peer name guest2");
        daemon.wait_for_log("port2: attached, port 0, of guest web");
        drop(daemon);
        let daemon = place.run();
        daemon.wait_for_log("port2: adopted");
        daemon.is_ready();
        assert_eq!(place.ports(), both);
        exchange(&mut one, &mut other);

        // What is one port stays so while it is attached.
        place.write(apart);
        let output = place.vcc("policy apply").well();
        assert!(output.contains("port2 still shares the port of port and its rules"), "{output}");
        place.vcc("detach --now port2").well();
        daemon.wait_for_log("port2: detached by hand");
        place.vcc("policy apply").well();
        eventually("it is a port of its own", || {
            place.ports().get(1).is_some_and(|port| port.1 == 1)
        });
        place.write(&together);
        let output = place.vcc("policy apply").well();
        assert!(
            output.contains("port2 and port belong to the guest web, but are separate ports"),
            "{output}"
        );
        exchange(&mut one, &mut other);
    });
}

#[test]
fn what_a_vanished_device_held_of_a_pool_is_given_back() {
    on_a_host(|| {
        let text = "[[ports]]\ndevice = \"port\"\n[[pools]]\nname = \"p\"\nwindow = \"100K\"\n\
                    [default]\nunderlay = \"dctcp\"\npool = \"p\"\n";
        let place = Place::new("pools", text);
        let guest = guest();
        let daemon = place.run();
        daemon.is_ready();
        let (mut one, mut other) = connect(&guest);
        exchange(&mut one, &mut other);
        let held = || {
            let shared = SharedPolicy::find().expect("read").expect("there");
            let used = &shared.pools().expect("pools")[0];
            (used.held_bytes, used.weight)
        };
        assert_ne!(held(), (0, 0));
        ip("link delete port");
        daemon.wait_for_log("port is gone, with 1 connection(s)");
        assert_eq!(held(), (0, 0));
    });
}

#[test]
fn a_device_that_fails_is_reported_once_and_retried() {
    on_a_host(|| {
        let place = Place::new("refused", POLICY);
        ip("tuntap add mode tun name port-tun");
        ip("link add port1 type veth peer name guest1");
        vcc("attach port1").well();
        let daemon = place.run();
        let output = daemon.wait_for_log("port-tun is not a port");
        assert!(output.contains("is not an Ethernet device"), "{output}");
        let output = daemon.wait_for_log("port1 is not a port");
        assert!(output.contains("already attached"), "{output}");
        daemon.is_ready();
        ip("link set port-tun up");
        vcc("detach port1").well();
        ip("link set port1 up");
        let output = daemon.wait_for_log("port1");
        assert!(output.contains("port1: attached, port 0"), "{output}");
        assert_eq!(place.status()["problems"].as_array().expect("problems").len(), 1);
    });
}

/// A pattern of all names is the first that one tries.
#[test]
fn devices_of_the_host_become_ports_only_by_their_names() {
    on_a_host(|| {
        let place = Place::new("host", "[[ports]]\ndevice = \"*\"\n[default]\nmode = \"shadow\"\n");
        ip("link add br0 type bridge");
        ip("link add vnet0 type veth peer name inner");
        ip("link set vnet0 master br0");
        ip("link add uplink type veth peer name beyond");
        ip("address add 203.0.113.2/24 dev uplink");
        ip("link set uplink up");
        ip("route add default dev uplink");
        let list = "br0 (a bridge), lo (the loopback), uplink (the device of the default route)";
        let checked = place.vcc("policy check FILE");
        assert_eq!(checked.code, 0);
        let lines: Vec<&str> = checked.stderr.lines().collect();
        assert!(lines[0].contains("policy.toml:2:10: warning: `*` also matches"), "{}", lines[0]);
        assert!(list.split(", ").all(|device| lines[0].contains(device)), "{}", lines[0]);
        assert_eq!(lines[2], "   |          ^^^");

        let daemon = place.run();
        let logged = daemon.wait_for_log("br0 does not become a port by a pattern");
        assert!(logged.contains("a bridge. Match guests' devices alone"), "{logged}");
        daemon.is_ready();
        let ports: Vec<String> = place.ports().into_iter().map(|(device, _)| device).collect();
        assert_eq!(ports.len(), 3, "the veths alone: {ports:?}");
        let status = place.vcc("status").well();
        assert_eq!(status.matches("warning: a pattern of [[ports]]").count(), 1, "{status}");
        assert!(status.contains(list), "{status}");
        assert_eq!(place.status()["problems"], serde_json::json!([]));

        // It may be meant.
        place.write("[[ports]]\ndevice = \"br0\"\n[[ports]]\ndevice = \"vnet*\"\n");
        assert_eq!(place.vcc("policy apply").code, 0);
        eventually("it is a port", || place.ports().iter().any(|(device, _)| device == "br0"));
        assert_eq!(place.status()["warnings"], serde_json::json!([]));
    });
}

/// Detaching would release its connections, and the daemon would attach to it again.
#[test]
fn a_port_that_the_daemon_keeps_is_not_attached_by_hand() {
    on_a_host(|| {
        let place = Place::new("kept", POLICY);
        ip("link add port1 type veth peer name guest1");
        ip("link add first type veth peer name second");
        let mut daemon = place.run();
        daemon.is_ready();
        let file = place.config();
        let file = file.display();
        vcc("attach first").well();
        for line in ["attach port1", "attach second port1", "attach port1 --same-guest-as first"] {
            let expected = format!(
                "the daemon keeps `port1` under {file}: edit [[ports]] and [[rules]] there, then `vcc policy \
                 apply`"
            );
            assert_eq!(place.vcc(line).complaint(1), expected, "{line}");
        }
        daemon.kill();
        let complaint = place.vcc("attach port1").complaint(1);
        assert!(complaint.starts_with("`port1` is under a policy of `vcc run`"), "{complaint}");
    });
}

#[test]
fn what_was_detached_by_hand_stays_off_until_a_reload() {
    on_a_host(|| {
        let place = Place::new("by-hand", POLICY);
        ip("link add port1 type veth peer name guest1");
        let daemon = place.run();
        daemon.is_ready();
        vcc("detach port1").well();
        daemon.wait_for_log("port1: detached by hand");
        ip("link set port1 up");
        assert_eq!(place.ports(), []);
        daemon.signal(libc::SIGHUP);
        daemon.wait_for_log("port1: attached, port 0");
    });
}

#[test]
fn a_device_that_is_renamed_may_change_hands() {
    on_a_host(|| {
        let text = format!("{POLICY}[[ports]]\ndevice = \"blue*\"\ntenant = \"blue\"\n");
        let place = Place::new("renamed", &text);
        ip("link add port1 type veth peer name guest1");
        let daemon = place.run();
        daemon.wait_for_log("port1: attached, port 0, of tenant acme");
        let tenant = || place.status()["ports"][0]["tenant"].as_str().map(str::to_owned);
        assert_eq!(tenant().as_deref(), Some("acme"));
        ip("link set port1 name blue1");
        daemon.wait_for_log("blue1 was renamed; its name was port1");
        assert_eq!(tenant().as_deref(), Some("blue"));
        ip("link set blue1 name other1");
        daemon.wait_for_log("other1 was renamed; its name was blue1");
        daemon.wait_for_log("other1: drained and detached");
        assert_eq!(place.ports(), []);
    });
}

#[test]
fn a_device_that_goes_into_another_namespace_keeps_who_needs_vcc() {
    on_a_host(|| {
        let place = Place::new("moved", POLICY);
        let guest = guest();
        let daemon = place.run();
        daemon.is_ready();
        let (mut one, mut other) = connect(&guest);
        exchange(&mut one, &mut other);
        let elsewhere = Netns::create().expect("a namespace");
        ip(&format!("link set port netns {}", elsewhere.path()));
        daemon.wait_for_log("port was moved to another network namespace: draining");
        // Another of its name is another, and finds a number that is free.
        ip("link add port type veth peer name guest2");
        let output = daemon.wait_for_log("port: attached");
        assert!(output.contains("port 1"), "{output}");
        let moved = elsewhere.inside(|| {
            ip("address add 192.0.2.2/24 dev port");
            ip("link set port up");
        });
        moved.expect("inside");
        // The device's new place has no host end of the connection, so the guest's end is reset.
        drop(one);
        drop(other);
        daemon.wait_for_log("port: drained and detached");
        assert_eq!(place.ports(), [("port".to_owned(), 1)]);
    });
}

#[test]
fn news_that_could_not_be_heard_is_made_up_for() {
    on_a_host(|| {
        let place = Place::new("overrun", POLICY);
        ip("link add port1 type veth peer name guest1");
        ip("link add other type veth peer name guest2");
        let daemon = place.run();
        daemon.is_ready();
        daemon.signal(libc::SIGSTOP);
        // More than fits into the daemon's socket.
        let lines: String =
            (0..10_000).map(|i| format!("link set other mtu {}\n", 1400 + i % 2)).collect();
        let batch = place.path("batch");
        fs::write(&batch, lines).expect("a file");
        ip(&format!("-batch {}", batch.display()));
        ip("link delete port1");
        ip("link add port2 type veth peer name guest3");
        daemon.signal(libc::SIGCONT);
        daemon.wait_for_log("events of network devices were lost");
        daemon.wait_for_log("port2: attached");
        assert_eq!(place.ports(), [("port2".to_owned(), 0)]);
    });
}

#[test]
fn a_device_that_comes_back_is_the_port_that_it_was() {
    on_a_host(|| {
        let place = Place::new("back", POLICY);
        let guest = guest();
        let daemon = place.run();
        daemon.is_ready();
        // It keeps the port from being detached.
        let _talk = connect(&guest);
        let (here, elsewhere) = (Netns::current(), Netns::create());
        let (here, elsewhere) = (here.expect("a namespace"), elsewhere.expect("a namespace"));
        ip(&format!("link set port netns {}", elsewhere.path()));
        daemon.wait_for_log("port was moved to another network namespace: draining");
        let back = || ip(&format!("link set port netns {}", here.path()));
        elsewhere.inside(back).expect("inside");
        daemon.wait_for_log("port has come back");
        daemon.wait_for_log("port: no longer draining");
        assert_eq!(place.ports(), [("port".to_owned(), 0)]);
        assert_eq!(place.status()["ports"][0]["draining"], false);
    });
}

#[test]
fn what_drains_by_hand_is_a_port_again_by_a_reload_or_off() {
    on_a_host(|| {
        let place = Place::new("drained", POLICY);
        let guest = guest();
        let daemon = place.run();
        daemon.is_ready();
        let talk = connect(&guest);
        let drain = || {
            assert_eq!(vcc("detach port").code, 0);
            eventually("it drains", || place.status()["ports"][0]["draining"] == true);
        };
        drain();
        daemon.signal(libc::SIGHUP);
        daemon.wait_for_log("port: no longer draining");
        daemon.is_ready();
        drain();
        drop(talk);
        daemon.wait_for_log("port: drained and detached");
        daemon.wait_for_log("port: detached by hand; a reload attaches it again");
        daemon.signal(libc::SIGHUP);
        daemon.wait_for_log("port: attached, port 0");
    });
}

#[test]
fn what_drains_by_hand_continues_to_when_another_device_is_renamed() {
    on_a_host(|| {
        let text = format!("{POLICY}[[ports]]\ndevice = \"blue*\"\ntenant = \"blue\"\n");
        let place = Place::new("drains-on", &text);
        let guest = guest();
        let daemon = place.run();
        daemon.is_ready();
        ip("link add port1 type veth peer name guest1");
        daemon.wait_for_log("port1: attached");
        let _talk = connect(&guest);
        assert_eq!(vcc("detach port").code, 0);
        let drains = || {
            let ports = place.status()["ports"].take();
            let port = ports.as_array().into_iter().flatten().find(|it| it["device"] == "port");
            port.is_some_and(|it| it["draining"] == true)
        };
        eventually("it drains", drains);
        ip("link set port1 name blue1");
        daemon.wait_for_log("blue1 was renamed; its name was port1");
        eventually("the rules of the other", || {
            place.status()["ports"].to_string().contains("\"blue\"")
        });
        assert!(drains());
        daemon.signal(libc::SIGHUP);
        daemon.wait_for_log("port: no longer draining");
    });
}

#[test]
fn what_was_in_the_way_may_go_without_a_word() {
    on_a_host(|| {
        let place = Place::new("again", POLICY);
        ip("link add port1 type veth peer name guest1");
        vcc("attach port1").well();
        let daemon = place.run();
        daemon.wait_for_log("port1 is not a port: vcc is already attached");
        daemon.is_ready();
        vcc("detach port1").well();
        daemon.wait_for_log("port1: attached, port 0");
    });
}

#[test]
fn the_end_does_not_wait_for_all_devices() {
    on_a_host(|| {
        const DEVICES: usize = 40;
        let place = Place::new("end", POLICY);
        let daemon = place.run();
        daemon.is_ready();
        daemon.signal(libc::SIGSTOP);
        for number in 0..DEVICES {
            ip(&format!("link add port{number} type veth peer name guest{number}"));
        }
        daemon.signal(libc::SIGTERM);
        daemon.signal(libc::SIGCONT);
        assert_eq!(daemon.end(), 0);
        assert!(Port::list().expect("a list").len() < DEVICES);
    });
}
