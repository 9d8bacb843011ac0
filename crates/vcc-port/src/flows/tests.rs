use std::collections::HashSet;
use std::net::IpAddr;

use libbpf_rs::{MapCore, MapFlags};
use vcc_frames::{Packet, payload};
use vcc_testing::can_attach;

use super::*;
use crate::{AttachOptions, Datapath, Program, counters};

/// A flow of 192.0.2.1, port 40000, with peer 2001:db8:: + `number` in VLAN 5.
pub(crate) fn insert(map: &MapHandle, number: u32, flow: sys::vcc_flow) {
    let guest = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1];
    let peer = (0x2001_0db8_u128 << 96 | u128::from(number)).to_be_bytes();
    let ports = [40_000u16.to_be_bytes(), 80u16.to_be_bytes()].concat();
    let vlan = [5u16.to_ne_bytes(), [0; 2]].concat();
    let key = [&guest[..], &peer, &ports, &vlan].concat();
    let entry = sys::vcc_entry { flow, ..Default::default() };
    // SAFETY: pointer and length are those of the entry, which has no padding but at its end.
    let value = unsafe {
        std::slice::from_raw_parts(std::ptr::from_ref(&entry).cast(), size_of_val(&entry))
    };
    map.update(&key, value, MapFlags::ANY).expect("a new flow");
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
        insert(&datapath.maps().flows, number, flow);
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
/// found the old entry detects this by its tag, and leaves the entry alone.
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
    let tag_at = std::mem::offset_of!(sys::vcc_entry, tag);
    let turn_tag = || {
        let mut other = entry();
        other[tag_at] ^= 1;
        map.update(&key, &other, MapFlags::EXIST).expect("a write");
    };
    let data = Packet { seq: 2, ack: 1, payload: payload(100), ..Packet::new(guest, peer) };

    turn_tag();
    let before = entry();
    assert_eq!(run(&data).frame, data.frame());
    assert_eq!(unknown(), 1);
    assert_eq!(entry(), before, "and is let go of");
    turn_tag();
    run(&data);
    assert_eq!(unknown(), 1);
}
