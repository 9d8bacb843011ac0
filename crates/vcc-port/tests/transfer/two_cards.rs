//! A guest with two cards: what comes to it passes one, and what it sends passes the other.

use std::net::{TcpListener, TcpStream};

use vcc_engine::Params;
use vcc_policy::Order;
use vcc_port::{AttachOptions, Netns, Port, counters};
use vcc_testing::{add_second_device, guest, ip, on_a_host};

use crate::common::{STALLED, exchange, payload};

/// Of the peer, which the guest reaches by its second card alone.
const PEER: &str = "203.0.113.1";
const GUEST: &str = "192.0.2.1";

fn two_cards() -> Netns {
    let guest = guest();
    ip("link set lo up");
    ip(&format!("address add {PEER}/32 dev lo"));
    add_second_device(&guest);
    // The peer opens from the address to which the guest answers by its second card.
    ip(&format!("route add {GUEST} dev port src {PEER}"));
    guest
}

/// The guest's end and the peer's.
fn connect(guest: &Netns, guest_opens: bool) -> (TcpStream, TcpStream) {
    if guest_opens {
        let listener = TcpListener::bind((PEER, 0)).expect("a listener");
        let to = listener.local_addr().expect("an address");
        let ours = guest.inside(|| TcpStream::connect_timeout(&to, STALLED)).expect("inside");
        return (ours.expect("connected"), listener.accept().expect("accepted").0);
    }
    let listener = guest.inside(|| TcpListener::bind((GUEST, 0))).expect("inside");
    let listener = listener.expect("a listener");
    let to = listener.local_addr().expect("an address");
    let theirs = TcpStream::connect_timeout(&to, STALLED).expect("connected");
    (listener.accept().expect("accepted").0, theirs)
}

#[test]
fn both_directions_are_of_one_port() {
    on_a_host(|| {
        let guest = two_cards();
        let payload = payload(4 << 20);
        for police in [false, true] {
            let params = Params::with(|p| {
                p.police = police.into();
                p.unknown_grace_s = 0;
            });
            let port = Port::attach("port", &AttachOptions::from_params(params)).expect("attached");
            let second = port.join(&["second"], Order::default()).expect("joined").remove(0);
            for guest_opens in [false, true] {
                let (ours, theirs) = connect(&guest, guest_opens);
                exchange(&ours, &theirs, &payload);
                assert_eq!(second.usage().expect("usage"), port.usage().expect("usage"));
                assert!(port.usage().expect("usage").flows > 0);
            }
            let counted = port.counters().expect("counters");
            for counter in [
                counters::ONE_DIRECTION,
                counters::UNKNOWN,
                counters::UNKNOWN_DROPPED,
                counters::POLICED,
            ] {
                assert_eq!(counted.get(counter), 0, "{}, police: {police}", counter.name);
            }
        }
    });
}
