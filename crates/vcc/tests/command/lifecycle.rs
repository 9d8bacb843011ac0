use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::Value;
use vcc_port::Netns;
use vcc_port::testing::{can_attach, guest, ip, isolated};

use crate::vcc;

/// A connection from the guest to the host: the guest's end and the host's.
fn connect(guest: &Netns) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
    let address = listener.local_addr().expect("an address");
    let connected = guest.inside(|| TcpStream::connect(address)).expect("inside");
    (connected.expect("a connection"), listener.accept().expect("a connection").0)
}

/// Sends a mebibyte each way and compares what arrives with what was sent.
fn exchange(one: &mut TcpStream, other: &mut TcpStream) {
    let payload: Vec<u8> =
        (0u32..1 << 18).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let transfer = |from: &mut TcpStream, to: &mut TcpStream| {
        let mut arrived = vec![0; payload.len()];
        std::thread::scope(|scope| {
            scope.spawn(|| from.write_all(&payload).expect("sent"));
            to.read_exact(&mut arrived).expect("received");
        });
        assert!(arrived == payload, "what arrived is not what was sent");
    };
    transfer(one, other);
    transfer(other, one);
}

fn flows() -> Vec<Value> {
    let json = vcc("flows --json").well();
    serde_json::from_str(&json).expect("an array")
}

#[test]
fn attach_watch_detach() {
    if !can_attach() {
        return;
    }
    isolated(|| {
        let guest = guest();
        assert_eq!(vcc("attach port").well(), "attached to port: reno-ecn\n");
        assert_eq!(flows(), Vec::<Value>::new());

        let (mut from_guest, mut to_guest) = connect(&guest);
        exchange(&mut from_guest, &mut to_guest);
        let [flow] = &flows()[..] else { panic!("one connection") };
        let addresses = [from_guest.local_addr(), from_guest.peer_addr()];
        let [here, there] = addresses.map(|address| address.expect("an address").to_string());
        assert_eq!((&flow["guest"], &flow["peer"]), (&here.into(), &there.into()));
        assert_eq!(flow["stage"], "established");
        // The kernel's default: it accepts ECN, and does not ask for it.
        assert_eq!((&flow["ecn_guest"], &flow["ecn_fabric"]), (&"no".into(), &"yes".into()));
        assert!(flow["cwnd_segs"].as_u64() >= Some(10), "{flow}");
        assert_eq!((&flow["marks"], &flow["reductions"]), (&0.into(), &0.into()));
        let table = vcc("flows port").well();
        assert!(table.starts_with("PORT") && table.contains("192.0.2.2"), "{table}");
        let ports = vcc("ports").well();
        assert!(ports.starts_with("port: reno-ecn, enforce, 1 of 65536 connections\n"), "{ports}");

        let said = vcc("detach --now port").well();
        assert!(said.starts_with("detached from port; 1 connection"), "{said}");
        assert_eq!(vcc("ports").well(), "vcc is attached nowhere\n");
    });
}

#[test]
fn detaching_waits_for_connections_that_need_vcc() {
    if !can_attach() {
        return;
    }
    isolated(|| {
        let guest = guest();
        vcc("attach port").well();
        let (mut from_guest, mut to_guest) = connect(&guest);
        exchange(&mut from_guest, &mut to_guest);

        let said = vcc("detach port").well();
        assert!(said.contains("draining: 1 connection still needs vcc"), "{said}");
        let complaint = vcc("detach port --wait --timeout 0").complaint(1);
        assert!(complaint.contains("draining: 1 connection still needs vcc"), "{complaint}");
        exchange(&mut from_guest, &mut to_guest);

        let (mut new_guest, mut new_host) = connect(&guest);
        exchange(&mut new_guest, &mut new_host);
        assert_eq!(flows().len(), 1, "a draining port takes no new connection");

        drop((from_guest, to_guest));
        assert_eq!(vcc("detach port --wait --timeout 60").well(), "detached from port\n");
        exchange(&mut new_guest, &mut new_host);
    });
}

#[test]
fn attaching_again_ends_the_draining() {
    if !can_attach() {
        return;
    }
    isolated(|| {
        let guest = guest();
        vcc("attach port").well();
        let (mut from_guest, mut to_guest) = connect(&guest);
        assert!(vcc("detach port").well().contains("draining: 1 connection"));
        assert_eq!(vcc("attach port").well(), "port drains no more: reno-ecn\n");
        assert!(vcc("attach port").complaint(1).contains("already attached"));

        let (mut new_guest, mut new_host) = connect(&guest);
        exchange(&mut from_guest, &mut to_guest);
        exchange(&mut new_guest, &mut new_host);
        assert_eq!(flows().len(), 2, "the new connection is taken");
    });
}

#[test]
fn shadow_mode_changes_nothing() {
    if !can_attach() {
        return;
    }
    isolated(|| {
        let guest = guest();
        vcc("attach --shadow port").well();
        let (mut from_guest, mut to_guest) = connect(&guest);
        exchange(&mut from_guest, &mut to_guest);
        let [flow] = &flows()[..] else { panic!("one connection") };
        assert_eq!(flow["ecn_fabric"], "no");
        // Nothing depends on vcc, so nothing has to be waited for.
        assert_eq!(vcc("detach port").well(), "detached from port\n");
    });
}

#[test]
fn a_gone_device_is_forgotten_with_a_word() {
    if !can_attach() {
        return;
    }
    isolated(|| {
        let _guest = guest();
        vcc("attach port").well();
        ip("link delete port");
        let said = vcc("ports");
        assert_eq!((said.code, said.stdout.as_str()), (0, "vcc is attached nowhere\n"));
        assert!(said.stderr.contains("removed what was left of `port`"), "{}", said.stderr);
        vcc("ports").well();
    });
}
