//! Trains (datapath/gro_list.h): what the far ends see of segments that came to the port, in either
//! direction, as lists of whole packets.
//!
//!    guest - port - bridge - uplink - peer, which has ECN

use std::net::TcpStream;
use std::thread;

use vcc_port::{AttachOptions, Netns, Port, counters};
use vcc_testing::{ip, on_a_host};
use vcc_traffic::TcpInfo;

use crate::common::{End, configure, ethtool, exchange, payload, receive, send, set_ecn};
use crate::watch::Watch;

const PAYLOAD_BYTES: usize = 1 << 20;
/// Single segments leave the ends.
const END: &str = "tx on tso off gso off gro off";
/// They are merged on the host, and segmented when they leave it.
const HOST: &str = "tx on tso off gso off gro on";
/// As lists, and as super-segments.
const FORMS: [&str; 2] = ["rx-gro-list on", "rx-gro-list off rx-udp-gro-forwarding on"];

/// A namespace whose device `inside` is the far end of the bridge's port `device`.
fn end(device: &str, host: u8, ecn: &str) -> (Netns, Watch) {
    let netns = Netns::create().expect("a namespace");
    ip(&format!("link add {device} type veth peer name inside netns {}", netns.path()));
    ip(&format!("link set {device} master bridge0 up"));
    ethtool(device, HOST);
    let watch = netns.inside(|| {
        configure("inside", host);
        ethtool("inside", END);
        set_ecn(ecn);
        Watch::attach("inside", 0, false)
    });
    (netns, watch.expect("inside"))
}

#[test]
fn each_segment_of_what_gro_has_merged_is_translated() {
    on_a_host(|| {
        ip("link add bridge0 type bridge mcast_snooping 0");
        ip("link set bridge0 up");
        let (guest, at_guest) = end("port", 1, "0");
        let (peer, at_peer) = end("uplink", 2, "1");
        let on_host = ["port", "uplink"].map(|device| Watch::attach(device, 0, false));
        let port = Port::attach("port", &AttachOptions::default()).expect("attached");
        let payload = payload(PAYLOAD_BYTES);
        let ends = [End { netns: Some(&guest), host: 1 }, End { netns: Some(&peer), host: 2 }];
        for (form, v6) in FORMS.into_iter().flat_map(|form| [(form, false), (form, true)]) {
            for device in ["port", "uplink"] {
                ethtool(device, form);
            }
            for watch in [&at_guest, &at_peer].into_iter().chain(&on_host) {
                watch.reset();
            }
            let (here, there) = ends[0].connect(&ends[1], v6);
            send_both_ways(&here, &there, &payload);
            let [from_guest, to_guest] = on_host.each_ref().map(Watch::seen);
            let (out, back) = (at_peer.seen(), at_guest.seen());
            assert!(from_guest.segments < out.segments, "the port merges: {from_guest:?} {out:?}");
            assert!(to_guest.segments < back.segments, "so does the uplink: {to_guest:?} {back:?}");
            assert!(to_guest.ect > 0, "the peer has ECN: {to_guest:?}");
            // Retransmissions are Not-ECT (RFC 3168, 6.1.5).
            let sent_again_bytes = TcpInfo::read(&here).expect("its state").retrans_bytes;
            assert!(out.payload_bytes - out.ect_bytes <= sent_again_bytes, "{out:?}");
            assert_eq!((back.ect, back.ece, back.cwr), (0, 0, 0), "the guest has not: {back:?}");
        }
        let counted = port.counters().expect("counters");
        for never in [counters::MALFORMED, counters::UNKNOWN, counters::REWRITE_FAILED] {
            assert_eq!(counted.get(never), 0, "{}", never.meaning);
        }
    });
}

/// One way after the other, and then both at once.
fn send_both_ways(here: &TcpStream, there: &TcpStream, payload: &[u8]) {
    for (from, to) in [(here, there), (there, here)] {
        thread::scope(|scope| {
            scope.spawn(|| send(from, payload));
            receive(to, payload);
        });
    }
    exchange(here, there, payload);
}
