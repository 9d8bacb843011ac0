//! All combinations of offloads. A wrong checksum would stall a transfer, except where veth hides
//! it by offloading.

use vcc_engine::sys;
use vcc_port::{AttachOptions, Netns, Port, counters};
use vcc_testing::{ip, on_a_host};

use crate::common::{End, configure, ethtool, exchange, payload, set_ecn};

/// Arguments of ethtool -K, from all offloads to none.
const OFFLOADS: [&str; 4] = [
    "tx on tso on gso on gro on",
    "tx on tso off gso on gro on",
    "tx on tso off gso off gro off",
    "tx off tso off gso off gro off",
];
const PAYLOAD_BYTES: usize = 1 << 19;

/// A guest in a namespace of its own behind `port`; the calling thread's namespace is the peer.
fn wire() -> Netns {
    let guest = Netns::create().expect("a namespace");
    ip(&format!("link add port type veth peer name guest netns {}", guest.path()));
    configure("port", 2);
    let inside = guest.inside(|| {
        configure("guest", 1);
        set_ecn("0");
    });
    inside.expect("inside");
    set_ecn("1");
    guest
}

#[test]
fn payload_survives_every_combination_of_offloads() {
    on_a_host(|| {
        let netns = wire();
        let port = Port::attach("port", &AttachOptions::default()).expect("attached");
        let payload = payload(PAYLOAD_BYTES);
        let (guest, peer) = (End { netns: Some(&netns), host: 1 }, End { netns: None, host: 2 });
        for (inner, outer) in OFFLOADS.iter().flat_map(|a| OFFLOADS.iter().map(move |b| (a, b))) {
            netns.inside(|| ethtool("guest", inner)).expect("inside");
            ethtool("port", outer);
            for (v6, guest_opens) in [(false, true), (false, false), (true, true), (true, false)] {
                let (here, there) = if guest_opens {
                    guest.connect(&peer, v6)
                } else {
                    let (there, here) = peer.connect(&guest, v6);
                    (here, there)
                };
                exchange(&here, &there, &payload);
                let local = here.local_addr().expect("an address");
                let remote = here.peer_addr().expect("an address");
                let flows = port.flows().expect("flows");
                let flow = flows.iter().find(|flow| (flow.guest, flow.peer) == (local, remote));
                let flow = flow.expect("the flow is known");
                assert!(flow.state.is_managed());
                assert!(flow.state.has(sys::FLOW_ECN_FABRIC), "{inner}; {outer}: no ECN");
            }
        }
        let counted = port.counters().expect("counters");
        for never in [
            counters::MALFORMED,
            counters::BAD_OPTIONS,
            counters::BAD_FLAGS,
            counters::UNKNOWN,
            counters::CONTENDED,
            counters::REWRITE_FAILED,
            counters::FORGED,
            counters::REPORT_LOST,
        ] {
            assert_eq!(counted.get(never), 0, "{}", never.meaning);
        }
    });
}
