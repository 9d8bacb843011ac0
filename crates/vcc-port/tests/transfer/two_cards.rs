//! A guest with two cards: what comes to it passes one, and what it sends passes the other; or both
//! pass both, as through a bond that sends each segment by the next of its devices.

use std::net::{TcpListener, TcpStream};

use vcc_engine::{OnUnknown, Params};
use vcc_policy::Order;
use vcc_port::{AttachOptions, Counter, Netns, Port, counters};
use vcc_testing::{accept_detours, add_second_device, guest, ip, on_a_host, tc};
use vcc_traffic::TcpCounters;

use crate::common::{STALLED, ethtool, exchange, payload};

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

/// The guest's end and the peer's, of a connection that the guest opens to `peer`.
fn guest_opens_to(guest: &Netns, peer: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((peer, 0)).expect("a listener");
    let to = listener.local_addr().expect("an address");
    let ours = guest.inside(|| TcpStream::connect_timeout(&to, STALLED)).expect("inside");
    (ours.expect("connected"), listener.accept().expect("accepted").0)
}

/// The guest's end and the peer's.
fn connect(guest: &Netns, guest_opens: bool) -> (TcpStream, TcpStream) {
    if guest_opens {
        return guest_opens_to(guest, PEER);
    }
    let listener = guest.inside(|| TcpListener::bind((GUEST, 0))).expect("inside");
    let listener = listener.expect("a listener");
    let to = listener.local_addr().expect("an address");
    let theirs = TcpStream::connect_timeout(&to, STALLED).expect("connected");
    (listener.accept().expect("accepted").0, theirs)
}

/// Both cards, as one port.
fn both_cards(police: bool) -> [Port; 2] {
    let params = Params::with(|p| {
        p.police = police.into();
        p.unknown_grace_s = 0;
    });
    let port = Port::attach("port", &AttachOptions::from_params(params)).expect("attached");
    let second = port.join(&["second"], Order::default()).expect("joined").remove(0);
    [port, second]
}

/// The port knew the connection of each segment, saw both of its directions and dropped nothing.
fn assert_follows_all(port: &Port) {
    let counted = port.counters().expect("counters");
    let params = port.params().expect("parameters");
    for counter in
        [counters::ONE_DIRECTION, counters::UNKNOWN, counters::UNKNOWN_DROPPED, counters::POLICED]
    {
        assert_eq!(counted.get(counter), 0, "{}, {params:?}", counter.name);
    }
}

#[test]
fn both_directions_are_of_one_port() {
    on_a_host(|| {
        let guest = two_cards();
        let payload = payload(4 << 20);
        for police in [false, true] {
            let [port, second] = both_cards(police);
            for guest_opens in [false, true] {
                let (ours, theirs) = connect(&guest, guest_opens);
                exchange(&ours, &theirs, &payload);
                assert_eq!(second.usage().expect("usage"), port.usage().expect("usage"));
                assert!(port.usage().expect("usage").flows > 0);
            }
            assert_follows_all(&port);
        }
    });
}

/// Each card is a port of its own, which sees one direction.
#[test]
fn each_direction_is_of_another_port() {
    on_a_host(|| {
        let guest = two_cards();
        let payload = payload(4 << 20);
        for police in [false, true] {
            let params = Params::with(|p| {
                p.police = police.into();
                p.unknown_grace_s = 0;
                p.on_unknown = OnUnknown::Pass.number();
            });
            let options = AttachOptions::from_params(params);
            let ports =
                ["port", "second"].map(|device| Port::attach(device, &options).expect("attached"));
            for guest_opens in [false, true] {
                let (ours, theirs) = connect(&guest, guest_opens);
                exchange(&ours, &theirs, &payload);
            }
            let counted = |counter: Counter| -> u64 {
                ports.iter().map(|port| port.counters().expect("counters").get(counter)).sum()
            };
            // One that opens by its second card, and one whose answers leave by that.
            assert_eq!(counted(counters::ONE_DIRECTION), 2);
            assert_eq!([counters::POLICED, counters::UNKNOWN_DROPPED].map(counted), [0, 0]);
        }
    });
}

/// The host, by its side of the bond.
const BOND: &str = "192.0.2.2";
const GUEST_MAC: &str = "02:00:00:00:00:01";
const HOST_MAC: &str = "02:00:00:00:00:02";
/// One device delays what it sends by its queue, so it reorders.
const SLOWER: &str = "root tbf rate 400mbit burst 4000 limit 300000";
/// The last bit of IPv4's identification, which counts the segments of a connection.
const ODD: &str = "protocol ip u32 match u16 1 1 at 4";
const ANY: &str = "protocol ip u32 match u32 0 0";

/// `device` sends every second segment that it would send, or that comes to it, by `other`.
fn alternate(device: &str, hook: &str, which: &str, other: &str) {
    tc(&format!(
        "filter add dev {device} {hook} {which} action mirred egress redirect dev {other}"
    ));
}

/// Both cards lead both ways, one segment by the one and the next by the other.
fn bonded() -> Netns {
    let guest = guest();
    add_second_device(&guest);
    ip("address flush dev port");
    // The host's side of the bond, which forwards to both cards, and delays what is for the first.
    ip("link add bond type veth peer name slaves");
    ip(&format!("address add {BOND}/24 dev bond"));
    for device in ["port", "second", "bond"] {
        ip(&format!("link set {device} address {HOST_MAC}"));
    }
    for device in ["bond", "slaves"] {
        ip(&format!("link set {device} up"));
        ethtool(device, "tso off gso off gro off");
    }
    ip(&format!("neighbour replace {GUEST} lladdr {GUEST_MAC} dev bond"));
    tc("qdisc add dev slaves clsact");
    alternate("slaves", "ingress prio 1", ODD, "second");
    alternate("slaves", "ingress prio 2", ANY, "port");
    tc(&format!("qdisc add dev second {SLOWER}"));
    let configured = guest.inside(|| {
        for device in ["guest", "guest2"] {
            ip(&format!("link set {device} address {GUEST_MAC}"));
            ethtool(device, "tso off gso off gro off");
        }
        ip(&format!("neighbour replace {BOND} lladdr {HOST_MAC} dev guest"));
        tc("qdisc add dev guest clsact");
        alternate("guest", "egress", ODD, "guest2");
        tc(&format!("qdisc add dev guest2 {SLOWER}"));
        accept_detours();
    });
    configured.expect("inside");
    accept_detours();
    guest
}

/// Segments that came to the namespace's TCP before one that was sent earlier.
fn out_of_order() -> u64 {
    TcpCounters::read().expect("counters").get("TCPOFOQueue")
}

#[test]
fn a_bond_reorders_the_segments_of_one_port() {
    on_a_host(|| {
        let guest = bonded();
        let payload = payload(4 << 20);
        for police in [false, true] {
            let [port, second] = both_cards(police);
            let (ours, theirs) = guest_opens_to(&guest, BOND);
            exchange(&ours, &theirs, &payload);
            assert!(out_of_order() > 0, "the host received in order");
            assert!(guest.inside(out_of_order).expect("inside") > 0, "the guest did");
            assert_eq!(second.usage().expect("usage"), port.usage().expect("usage"));
            assert_eq!(port.flows().expect("flows").len(), 1);
            assert_follows_all(&port);
        }
    });
}
