//! A guest whose segments leave in IP fragments.

use std::thread::sleep;
use std::time::Duration;

use vcc_engine::sys;
use vcc_frames::wire::*;
use vcc_frames::{Packet, payload};
use vcc_port::counters;

use crate::conversation::{Conversation, MSS_BYTES, Shape};
use crate::direction::Direction::{self, FromGuest, ToGuest};
use crate::dual::DualRun;
use crate::setup::usual;

/// The first fragment ends after this much payload.
const FIRST_BYTES: usize = 28;

/// The first and a later fragment of a packet without extension headers.
fn fragments(packet: &Packet) -> [Vec<u8>; 2] {
    let l3 = ETHERNET_BYTES + TAG_BYTES * packet.tags.len();
    let ipv6 = packet.from.is_ipv6();
    let l4 = l3 + if ipv6 { IPV6_BYTES } else { IPV4_BYTES };
    let frame = packet.frame();
    // A multiple of eight.
    let first_bytes = (TCP_BYTES + packet.options.len() + FIRST_BYTES) & !7;
    let (first, later) = frame[l4..].split_at(first_bytes);
    [(first, 0, true), (later, first_bytes as u16, false)].map(|(part, at, more)| {
        let mut fragment = frame[..l4].to_vec();
        if ipv6 {
            // The offset in its upper bits, and M in the lowest (RFC 8200, 4.5).
            let next = fragment[l3 + 6];
            fragment[l3 + 6] = PROTOCOL_FRAGMENT;
            let [high, low] = (at | u16::from(more)).to_be_bytes();
            fragment.extend([next, 0, high, low, 0, 0, 0, 9]);
            write_u16(&mut fragment, l3 + 4, part.len() as u16 + 8);
        } else {
            write_u16(&mut fragment, l3 + 2, (IPV4_BYTES + part.len()) as u16);
            write_u16(&mut fragment, l3 + 6, (at / 8) | (u16::from(more) << 13));
        }
        fragment.extend(part);
        fragment
    })
}

/// Sends a full segment in fragments, which pass as they are.
fn send(c: &mut Conversation<'_>, from: Direction) {
    let mut packet = c.connection.packet(from);
    packet.payload = payload(MSS_BYTES);
    for fragment in fragments(&packet) {
        assert!(c.run.send(from, &fragment, 0).is_none(), "it passes unread");
    }
    c.connection.sent(from, &packet);
}

#[test]
fn a_connection_in_fragments_is_released() {
    if !vcc_testing::can_attach() {
        return;
    }
    for shape in Shape::all() {
        let mut run = DualRun::new(&usual());
        run.doing = format!("{shape:?}");
        let mut c = Conversation::new(&mut run, shape, 31_000);
        c.open();
        c.data(FromGuest, MSS_BYTES);
        let limited = c.ack(ToGuest).window();
        send(&mut c, ToGuest);
        c.ack(FromGuest);
        assert_eq!(c.state().flags & sys::FLOW_RELEASED, 0, "the peer's say nothing");
        // A timer may hold the flow on a CPU that has been descheduled: then a later fragment releases it.
        let mut segments_sent = 1;
        while c.state().flags & sys::FLOW_RELEASED == 0 {
            assert!(segments_sent < 200, "{shape:?}: not released");
            sleep(Duration::from_millis(1));
            send(&mut c, FromGuest);
            segments_sent += 1;
        }
        for _ in 0..2 {
            send(&mut c, FromGuest);
            segments_sent += 1;
        }
        let shown = c.ack(ToGuest).window();
        let state = c.state();
        assert!(shown > limited, "{shown} after {limited}");
        assert_eq!(shown, 502 << (state.wscale_peer - state.wscale_shown), "the peer's own");
        assert_eq!(state.snd_una, c.connection.guest_next, "what came in fragments has come");
        // Whole segments follow, Not-ECT, and the end.
        assert_eq!(c.data(FromGuest, MSS_BYTES).ecn(), 0);
        c.ack(ToGuest);
        for from in Direction::BOTH {
            c.send(from, |p| p.flags |= FIN);
        }
        assert_eq!(u32::from(c.state().stage), sys::STAGE_CLOSED);
        let counted = run.datapath.counters().expect("counters");
        assert_eq!(counted.get(counters::IN_FRAGMENTS), 1);
        assert_eq!(counted.get(counters::FRAGMENT), 2 * segments_sent);
        run.assert_all();
    }
}

/// By the IP header's length.
#[test]
fn a_first_fragment_without_a_whole_header_says_nothing() {
    if !vcc_testing::can_attach() {
        return;
    }
    for ipv6 in [false, true] {
        let mut run = DualRun::new(&usual());
        let shape = Shape { ipv6, ..Shape::plain(FromGuest) };
        let mut c = Conversation::new(&mut run, shape, 32_000);
        c.open();
        let mut packet = c.connection.packet(FromGuest);
        packet.payload = payload(MSS_BYTES);
        let [first, _] = fragments(&packet);
        let tcp_bytes = TCP_BYTES + packet.options.len();
        let (length_at, headers_bytes) =
            if ipv6 { (4, 8 + tcp_bytes) } else { (2, IPV4_BYTES + tcp_bytes) };
        let beyond = first.len() - ETHERNET_BYTES + 1;
        for bytes in [0, 7, 19, headers_bytes - 1, beyond, 0xffff] {
            let mut wrong = first.clone();
            write_u16(&mut wrong, ETHERNET_BYTES + length_at, bytes as u16);
            c.run.doing = format!("a length of {bytes}, IPv6: {ipv6}");
            assert!(c.run.send(FromGuest, &wrong, 0).is_none(), "it passes unread");
            assert_eq!(c.state().flags & sys::FLOW_RELEASED, 0, "{bytes}");
        }
        run.assert_all();
    }
}
