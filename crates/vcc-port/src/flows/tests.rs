use std::collections::HashSet;
use std::net::IpAddr;

use libbpf_rs::{MapCore, MapFlags};
use vcc_frames::{Packet, payload};
use vcc_testing::can_attach;

use super::*;
use crate::plain::to_bytes;
use crate::{AttachOptions, Datapath, Program, counters};

/// A flow of 192.0.2.1, port 40000, with peer 2001:db8:: + `number` in VLAN 5.
pub(crate) fn insert(maps: &Maps, number: u32, flow: sys::vcc_flow) {
    let peer = std::net::Ipv6Addr::from(0x2001_0db8_u128 << 96 | u128::from(number));
    let (guest, peer) = (([192, 0, 2, 1], 40_000).into(), (peer, 80).into());
    let key = FlowId { guest, peer, vlan: Some(5), inside: false }.key(0);
    let tag = Table::from_maps(maps).expect("a table").tag(&key);
    let entry = sys::vcc_entry { flow, key, ..Default::default() };
    maps.flows.update(&tag, to_bytes(&entry), MapFlags::ANY).expect("a new flow");
}

#[test]
fn every_flow_is_read_once_whatever_the_batch() {
    if !can_attach() {
        return;
    }
    const FLOWS: u32 = 3000;
    let options = AttachOptions { max_flows: FLOWS, ..AttachOptions::default() };
    let datapath = Datapath::load(&options).expect("a datapath");
    for number in 0..FLOWS {
        let flow = sys::vcc_flow { snd_una: number, ..Default::default() };
        insert(datapath.maps(), number, flow);
    }
    let flows = datapath.flows().expect("flows");
    let numbers: HashSet<u32> = flows.iter().map(|flow| flow.state.snd_una).collect();
    assert_eq!((flows.len(), numbers.len()), (FLOWS as usize, FLOWS as usize));
    for flow in flows {
        assert_eq!(flow.guest.to_string(), "192.0.2.1:40000");
        let IpAddr::V6(peer) = flow.peer.ip() else { panic!("{}", flow.peer) };
        assert_eq!(peer.to_bits() as u32, flow.state.snd_una);
        assert_eq!((flow.peer.port(), flow.vlan), (80, Some(5)));
    }

    // With room for one entry, every bucket with two needs larger buffers.
    let mut batches = Batches::new(&datapath.maps().flows, 1);
    let mut count = 0;
    while let Some(entries) = batches.next().expect("a batch") {
        count += entries.count();
    }
    assert!(batches.room > 1);
    assert_eq!(count, FLOWS as usize);
}

/// The kernel may reuse the memory of a deleted entry for another flow at once. A program that had
/// found the old entry detects this by its check, and leaves the entry alone.
#[test]
fn an_entry_that_has_become_anothers_is_left_alone() {
    if !can_attach() {
        return;
    }
    let datapath = Datapath::load(&AttachOptions::default()).expect("a datapath");
    let (guest, peer) = (([192, 0, 2, 1], 40_000).into(), ([192, 0, 2, 2], 80).into());
    let run = |from_guest: &Packet| {
        datapath.run(Program::FromGuest, &from_guest.frame(), 0).expect("it runs")
    };
    let unknown = || datapath.counters().expect("counters").get(counters::UNKNOWN);
    run(&Packet { seq: 1, ..Packet::syn(guest, peer) });
    let map = &datapath.maps().flows;
    let key = map.keys().next().expect("a flow");
    let entry = || map.lookup(&key, MapFlags::ANY).expect("a read").expect("the flow");
    let check_at = std::mem::offset_of!(sys::vcc_entry, check);
    let turn_check = || {
        let mut other = entry();
        other[check_at] ^= 1;
        map.update(&key, &other, MapFlags::EXIST).expect("a write");
    };
    let data = Packet { seq: 2, ack: 1, payload: payload(100), ..Packet::new(guest, peer) };

    turn_check();
    let before = entry();
    assert_eq!(run(&data).frame, data.frame());
    assert_eq!(unknown(), 1);
    assert_eq!(entry(), before, "and is let go of");
    turn_check();
    run(&data);
    assert_eq!(unknown(), 1);
}

/// The datapath's tags are those by which user space looks connections up, and each host has its own.
#[test]
fn a_connection_is_found_by_its_tag() {
    if !can_attach() {
        return;
    }
    let hosts = [(); 2].map(|()| Datapath::load(&AttachOptions::default()).expect("a datapath"));
    let ends: [(SocketAddr, SocketAddr); 3] = [
        (([192, 0, 2, 1], 40_000).into(), ([192, 0, 2, 2], 80).into()),
        (([192, 0, 2, 1], 80).into(), ([192, 0, 2, 2], 40_000).into()),
        ("[2001:db8::1]:40000".parse().expect("valid"), "[2001:db8::2]:80".parse().expect("valid")),
    ];
    let tags = hosts.map(|datapath| {
        let table = Table::from_maps(datapath.maps()).expect("a table");
        let ids = ends.map(|(guest, peer)| FlowId { guest, peer, vlan: None, inside: false });
        for (number, id) in ids.iter().enumerate() {
            assert!(table.look_up(&id.key(0)).expect("a read").is_none(), "{id}");
            let syn = Packet { seq: number as u32, ..Packet::syn(id.guest, id.peer) };
            datapath.run(Program::FromGuest, &syn.frame(), 0).expect("it runs");
            let flow = table.look_up(&id.key(0)).expect("a read").expect("the flow");
            assert_eq!(flow.syn_seq, number as u32, "{id}");
        }
        assert!(table.look_up(&ids[0].key(1)).expect("a read").is_none(), "of another port");
        ids.map(|id| table.tag(&id.key(0)))
    });
    let all: HashSet<_> = tags.as_flattened().iter().collect();
    assert_eq!(all.len(), tags.as_flattened().len(), "{tags:?}");
}

#[test]
fn each_port_has_tags_of_its_own() {
    // Without secrets, a word that is zero hides the one that it is multiplied with.
    let of = |guest_port, port| {
        let key = sys::vcc_key { guest_port, port, ..Default::default() };
        tag(&Secrets::default(), &key)
    };
    assert_eq!(of(1, 0), of(2, 0));
    assert_ne!(of(1, 0), of(1, 1));
}
