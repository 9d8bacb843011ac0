use std::sync::Arc;

use vcc_engine::{Mode, Underlay};
use vcc_frames::{Packet, payload};

use super::*;
use crate::feedback_options;
use crate::frame::Checksum;
use crate::rules::{Rule, Rules};
use crate::testing::*;
use vcc_net::wire::*;

const NS_PER_MS: u64 = 1_000_000;
const TCP_AT: usize = ETHERNET_BYTES + IPV4_BYTES;
const CE: u8 = sys::IP_ECN_CE as u8;
const ECT_0: u8 = sys::IP_ECN_ECT_0 as u8;

fn emitting() -> Params {
    Params(sys::vcc_params { emit: 1, ..Params::default().0 })
}

/// A flow with feedback that has received marked data: a report is due.
fn with_a_report_due(params: Params) -> Talk {
    let mut talk = Talk::new(params);
    talk.open(&feedback_options::hello(sys::HELLO_ACCEPT as u8));
    assert!(talk.flow().has(sys::FLOW_FEEDBACK));
    let marked = Packet { payload: payload(MSS_BYTES), traffic_class: CE, ..talk.segment(false) };
    talk.pass(false, &marked);
    talk.peer_next += MSS_BYTES as u32;
    talk
}

#[test]
fn a_new_flow_has_a_deadline_within_a_second_and_is_forgotten() {
    let mut talk = Talk::v4();
    assert_eq!(talk.port.next_deadline_ns(), None);
    talk.now_ns = 5 * NS_PER_MS;
    let syn = Packet { flags: SYN, ..talk.segment(true) };
    talk.pass(true, &syn);
    assert_eq!(talk.port.next_deadline_ns(), Some(1005 * NS_PER_MS));
    talk.now_ns = 1004 * NS_PER_MS;
    assert!(talk.advance().is_empty());
    assert_eq!(talk.port.next_deadline_ns(), Some(1005 * NS_PER_MS), "too early");
    talk.now_ns = 1005 * NS_PER_MS;
    talk.advance();
    let idle_ms = u64::from(talk.port.params().0.idle_handshake_ms);
    assert_eq!(talk.port.next_deadline_ns(), Some((5 + idle_ms) * NS_PER_MS));
    talk.now_ns = (5 + idle_ms) * NS_PER_MS;
    talk.advance();
    assert_eq!(talk.port.next_deadline_ns(), None);
    assert_eq!(talk.port.flows().count(), 0);
}

#[test]
fn the_last_states_of_forgotten_flows_are_kept() {
    for keeps in [false, true] {
        let mut talk = Talk::v4();
        if keeps {
            talk.port.keep_forgotten();
        }
        let syn = Packet { flags: SYN, ..talk.segment(true) };
        talk.pass(true, &syn);
        assert!(talk.port.take_forgotten().is_empty());
        let last = *talk.flow();
        while let Some(next_ns) = talk.port.next_deadline_ns() {
            talk.now_ns = next_ns;
            talk.advance();
        }
        let forgotten = talk.port.take_forgotten();
        let seqs: Vec<_> = forgotten.iter().map(|(key, flow)| (*key, flow.snd_nxt)).collect();
        let expected = [(talk.key(), last.snd_nxt)];
        assert_eq!(seqs, if keeps { &expected[..] } else { &[] });
        assert!(talk.port.take_forgotten().is_empty());
    }
}

/// The port's timeout equals the engine's own.
#[test]
fn a_timeout_reaches_the_engine() {
    let mut talk = Talk::v4();
    talk.open(&[]);
    talk.data_from_guest();
    let mut alone = *talk.flow();
    let now_ns = talk.port.next_deadline_ns().expect("a flow");
    talk.now_ns = now_ns;
    talk.advance();
    let action = alone.deadline(talk.port.params(), now_ns / NS_PER_US, false);
    assert_eq!(alone.0, talk.flow().0);
    assert_eq!(u32::from(alone.ca_state), sys::CA_LOSS);
    let next_ns = talk.port.next_deadline_ns().expect("a flow");
    assert!(action.deadline_ms > 1000);
    assert_eq!(next_ns, now_ns + u64::from(action.deadline_ms) * NS_PER_MS);
}

/// Completing a partial checksum gives the port's full one.
#[test]
fn partial_checksums_complete_to_full_ones() {
    for v6 in [false, true] {
        let [mut full, mut partial, talk] =
            [(); 3].map(|()| if v6 { Talk::v6() } else { Talk::v4() });
        let mut both = |from_guest, segment: &Packet| {
            let (verdict, frame, also) = full.send(from_guest, framed(segment));
            let (same, half, half_also) = partial.send(from_guest, make_partial(framed(segment)));
            assert_eq!(verdict, same);
            assert_eq!(complete(half), frame);
            let half_also: Vec<_> = half_also.into_iter().map(complete).collect();
            assert_eq!(half_also, also);
            (frame, also)
        };
        let mss = vec![2, 4, 5, 0xb4, 1, 3, 3, 7];
        let syn = Packet { flags: SYN, ack: 0, options: mss.clone(), ..talk.segment(true) };
        let (out, _) = both(true, &syn);
        assert_eq!(
            out.bytes.len(),
            syn.frame().len() + feedback_options::APPENDED_BYTES,
            "an offer"
        );
        let options = [mss, feedback_options::hello(sys::HELLO_ACCEPT as u8).to_vec()].concat();
        let (seq, ack) = (talk.peer_next, talk.guest_next + 1);
        let syn_ack = Packet { flags: SYN | ACK | ECE, options, seq, ack, ..talk.segment(false) };
        let (out, _) = both(false, &syn_ack);
        assert_eq!(out.bytes.len(), syn_ack.frame().len() - feedback_options::APPENDED_BYTES);
        let (seq, ack) = (talk.guest_next + 1, talk.peer_next + 1);
        both(true, &Packet { seq, ack, ..talk.segment(true) });
        let marked = Packet {
            seq: ack,
            ack: seq,
            payload: payload(400),
            traffic_class: CE,
            ..talk.segment(false)
        };
        both(false, &marked);
        let data = Packet { seq, ack: ack + 400, payload: payload(600), ..talk.segment(true) };
        let (out, facks) = both(true, &data);
        assert_eq!((out.bytes.len(), facks.len()), (data.frame().len(), 1));
        both(false, &Packet { seq: ack + 400, ack: seq + 600, ..marked });
        let (out, _) = both(true, &Packet { ack: ack + 800, payload: Vec::new(), ..data });
        assert!(
            out.bytes.ends_with(&feedback_options::pack(&full.flow().counted)),
            "a report on a pure ACK"
        );
    }
}

/// A FACK has the ECN field of a pure ACK under the underlay.
#[test]
fn a_fack_follows_its_data() {
    for (underlay, ecn) in [("reno-ecn", 0), ("dctcp", ECT_0), ("dctcp-priority", ECT_0)] {
        let underlay = underlay.parse::<Underlay>().expect("an underlay").number();
        let mut talk =
            with_a_report_due(Params(sys::vcc_params { underlay, ..Params::default().0 }));
        let data = Packet { payload: payload(MSS_BYTES), ..talk.segment(true) };
        let frame = Frame { gso_size: 100, ..framed(&data) };
        let (verdict, frame, also) = talk.send(true, frame);
        assert_eq!((verdict, frame.gso_size), (Verdict::Pass, 100));
        let [fack] = &also[..] else { panic!("one FACK") };
        assert_eq!((fack.gso_size, fack.checksum), (0, Checksum::Full));
        assert_eq!(fack.bytes[ETHERNET_BYTES + 1] & 3, ecn);
        let tcp = &fack.bytes[TCP_AT..];
        assert_eq!(tcp[..8], frame.bytes[TCP_AT..TCP_AT + 8], "ports and number as the data's");
        assert_eq!(read_u32(tcp, TCP_ACK_AT), data.ack - 1);
        assert_eq!(tcp[TCP_BYTES..], feedback_options::fack(&talk.flow().counted));
    }
}

/// A BIG TCP super-segment has length 0, which a FACK cannot have.
#[test]
fn no_fack_beside_big_tcp() {
    let mut talk = with_a_report_due(Params::default());
    let data = Packet { payload: payload(2 * MSS_BYTES), ..talk.segment(true) };
    let mut frame = Frame { gso_size: MSS_BYTES as u16, ..framed(&data) };
    write_u16(&mut frame.bytes, ETHERNET_BYTES + 2, 0);
    let (verdict, frame, also) = talk.send(true, frame);
    assert_eq!((verdict, also.len()), (Verdict::Pass, 0));
    assert_eq!(read_u16(&frame.bytes, ETHERNET_BYTES + 2), 0);
    assert_eq!(talk.port.counters().get(sys::COUNT_REPORT_LOST), 1);
}

#[test]
fn a_dropped_frame_is_unchanged() {
    let mut talk = Talk::v4();
    talk.open(&[]);
    for _ in 0..4 {
        talk.data_from_guest();
    }
    let ack = Packet { ack: talk.guest_next - MSS_BYTES as u32, ..talk.segment(false) };
    talk.pass(false, &ack);
    // With the clamped window, the update would be a duplicate ACK to this guest (RFC 5681, 2).
    let update = framed(&Packet { window: 61_000, ..ack });
    let (verdict, frame, _) = talk.send(false, update.clone());
    assert_eq!((verdict, frame), (Verdict::Drop, update));
    assert_eq!(talk.port.counters().get(sys::COUNT_DROPPED), 1);
}

/// A draining port takes no new flows, which is no lack of room.
#[test]
fn only_a_full_table_counts_as_lack_of_room() {
    for (mode, table_full) in [(Mode::Enforce, 1), (Mode::Drain, 0)] {
        let params = sys::vcc_params { mode: mode.number(), ..Params::default().0 };
        let mut talk = Talk { port: Port::new(Params(params), 0), ..Talk::v4() };
        let syn = Packet { flags: SYN, ..talk.segment(true) };
        assert_eq!(talk.pass(true, &syn), framed(&syn));
        assert_eq!(talk.port.counters().get(sys::COUNT_TABLE_FULL), table_full);
        assert_eq!(talk.port.flows().count(), 0);
    }
}

/// Three, and one more shortly after if the guest does not react (AC/DC, 3.3).
#[test]
fn duplicate_acks_for_a_guest_that_waits() {
    let mut talk = a_flight(emitting());
    let quiet_since_ns = talk.now_ns;
    let mut emitted = Vec::new();
    while emitted.is_empty() {
        talk.now_ns = talk.port.next_deadline_ns().expect("a flow");
        emitted = talk.advance();
    }
    assert_eq!(emitted.len(), 3);
    let waited_ns = talk.now_ns - quiet_since_ns;
    assert!((10 * NS_PER_MS..20 * NS_PER_MS).contains(&waited_ns), "{waited_ns}");
    let expected = crate::ack::ack_to_guest(
        &talk.key(),
        talk.flow(),
        &sys::vcc_neighbour { guest_mac: GUEST_MAC, next_hop_mac: NEXT_HOP_MAC },
    );
    assert!(emitted.iter().all(|frame| *frame == expected));
    assert_eq!(expected.bytes[..2 * MAC_BYTES], [GUEST_MAC, NEXT_HOP_MAC].concat());
    let look_ns = talk.now_ns + 10 * NS_PER_MS;
    assert!(talk.port.next_deadline_ns().is_some_and(|next_ns| next_ns <= look_ns));
    talk.now_ns = look_ns;
    assert_eq!(talk.advance(), [expected]);
    talk.wait(10 * NS_PER_MS);
    assert_eq!(talk.advance(), []);
}

#[test]
fn a_guest_that_reacts_gets_no_more_duplicate_acks() {
    let mut talk = a_flight(emitting());
    talk.wait(15 * NS_PER_MS);
    assert_eq!(talk.advance().len(), 3);
    // The guest fast-retransmits.
    let again =
        Packet { seq: talk.flow().snd_una, payload: payload(MSS_BYTES), ..talk.segment(true) };
    talk.pass(true, &again);
    talk.wait(10 * NS_PER_MS);
    assert_eq!(talk.advance(), []);
}

/// They would be right, and acknowledge what the peer has not (law 9).
#[test]
fn duplicate_acks_do_not_repeat_what_the_guest_discards() {
    let mut talk = a_flight(emitting());
    let (acked, half) = (talk.flow().snd_una, MSS_BYTES as u32 / 2);
    let mut corrupt = framed(&Packet { ack: acked + half, ..talk.segment(false) });
    corrupt.bytes[TCP_AT + TCP_CHECK_AT] ^= 1;
    let (verdict, frame, emitted) = talk.send(false, corrupt.clone());
    assert_eq!((verdict, frame, emitted), (Verdict::Pass, corrupt, Vec::new()));
    talk.wait(15 * NS_PER_MS);
    let emitted = talk.advance();
    assert_eq!(emitted.len(), 3);
    assert!(emitted.iter().all(|frame| read_u32(&frame.bytes, TCP_AT + TCP_ACK_AT) == acked));
}

#[test]
fn nothing_is_emitted_unasked() {
    let mut talk = a_flight(Params::default());
    for _ in 0..5 {
        talk.now_ns = talk.port.next_deadline_ns().expect("a flow");
        assert_eq!(talk.advance(), []);
    }
}

/// A cap was lifted, so the window grew without an ACK.
#[test]
fn a_window_update_for_a_window_limited_guest() {
    let capped = sys::vcc_params { window_cap_bytes: 2 * MSS_BYTES as u32, ..emitting().0 };
    let mut talk = Talk::new(Params(capped));
    talk.open(&[]);
    talk.data_from_guest();
    talk.wait(NS_PER_MS);
    let ack = talk.segment(false);
    let shown = talk.pass(false, &ack);
    assert_eq!(read_u16(&shown.bytes, TCP_AT + TCP_WINDOW_AT), 2 * MSS_BYTES as u16);
    talk.data_from_guest();
    talk.data_from_guest();
    talk.port.set_params(emitting());
    talk.wait(12 * NS_PER_MS);
    let [update] = &talk.advance()[..] else { panic!("one update") };
    let window = read_u16(&update.bytes, TCP_AT + TCP_WINDOW_AT);
    assert!(usize::from(window) >= 10 * MSS_BYTES, "{window}");
    assert_eq!(window, talk.flow().window_shown);
}

/// MAC addresses are learned from SYNs only with emission enabled.
#[test]
fn segments_that_cannot_be_sent_are_counted() {
    let mut talk = a_flight(Params::default());
    talk.port.set_params(emitting());
    talk.data_from_guest();
    talk.wait(15 * NS_PER_MS);
    assert_eq!(talk.advance(), []);
    assert!(talk.flow().has(sys::FLOW_PRODDED), "requested by the engine");
    assert_eq!(talk.port.counters().get(sys::COUNT_EVENT_LOST), 1);
}

/// An RTT sample, and six segments in flight.
fn a_flight(params: Params) -> Talk {
    let mut talk = Talk::new(params);
    talk.open(&[]);
    talk.data_from_guest();
    talk.wait(NS_PER_MS);
    let ack = talk.segment(false);
    talk.pass(false, &ack);
    for _ in 0..6 {
        talk.data_from_guest();
    }
    talk
}

/// Equal frames at equal times give equal output, in any order of flows.
#[test]
fn runs_are_deterministic() {
    let run = || {
        let mut talk = a_flight(emitting());
        let mut out = Vec::new();
        for port in [9, 3, 7, 1] {
            talk.guest.set_port(port);
            let syn = Packet { flags: SYN, ack: 0, ..talk.segment(true) };
            out.push(talk.pass(true, &syn));
        }
        for _ in 0..20 {
            talk.now_ns = talk.port.next_deadline_ns().expect("a flow");
            out.extend(talk.advance());
        }
        let order: Vec<_> = talk.port.flows().map(|(key, flow)| (*key, flow.0)).collect();
        (out, order, talk.port.counters().clone())
    };
    let (out, order, counters) = run();
    assert!(order.is_sorted_by_key(|(key, _)| *key));
    assert_eq!((out, order, counters), run());
}

#[test]
fn each_ack_to_the_guest_is_traced_if_enabled() {
    let mut talk = Talk::v4();
    talk.open(&[]);
    assert!(talk.port.traced().is_empty());
    talk.port.trace();
    talk.data_from_guest();
    talk.wait(NS_PER_MS);
    talk.pass(false, &talk.segment(false));
    let [ack] = talk.port.traced() else { panic!("one ACK") };
    assert_eq!((ack.at_ns, ack.key), (NS_PER_MS, talk.key()));
    assert_eq!((ack.before.flight_bytes, ack.after.flight_bytes), (MSS_BYTES as u32, 0));
    assert_eq!(ack.after.snd_una, talk.guest_next);
    let flow = talk.flow();
    assert_eq!((ack.after.cwnd_segs, ack.after.mss_bytes), (flow.cc.cwnd_segs, 1000));
}

/// An ICMPv6 message about what the port has promised to deliver (RFC 8201).
#[test]
fn packets_too_big_for_the_path_leave_in_smaller_ones() {
    const MTU_BYTES: u32 = 1280;
    const SMALL_BYTES: u32 = MTU_BYTES - 60;
    let params = Params(sys::vcc_params { act: sys::ACT_SPLIT as u8, ..Params::default().0 });
    let ends = Talk::v6();
    let mut talk = Talk { guest: ends.guest, peer: ends.peer, ..Talk::new(params) };
    let options = vec![2, 4, 0x05, 0xa0];
    let syn = Packet { flags: SYN, ack: 0, options: options.clone(), ..talk.segment(true) };
    talk.pass(true, &syn);
    talk.guest_next += 1;
    let answer = Packet { flags: SYN | ACK, options, ..talk.segment(false) };
    assert_eq!(talk.cross(false, framed(&answer)).0, Verdict::Pass);
    talk.peer_next += 1;
    talk.pass(true, &talk.segment(true));
    let sent = [0; 3].map(|_| {
        let data = Packet { payload: payload(1440), ..talk.segment(true) };
        assert_eq!(talk.cross(true, framed(&data)).0, Verdict::Pass);
        talk.guest_next += 1440;
        data
    });
    let [first, second, _] = &sent;
    let message = |packet: &Packet, mtu_bytes| {
        let quote = vcc_frames::icmp::too_big(&packet.frame(), &packet.headers(), mtu_bytes, 100);
        Frame::full(quote)
    };
    // A link of IPv6 carries 1280 bytes (RFC 8201, 4).
    let (verdict, _, out) = talk.cross(false, message(second, MTU_BYTES - 1));
    assert_eq!((verdict, out), (Verdict::Pass, Out::default()));
    let (verdict, shown, out) = talk.cross(false, message(second, MTU_BYTES));
    assert_eq!(verdict, Verdict::Pass);
    assert!(vcc_frames::icmp::verify(&shown.bytes, ETHERNET_BYTES));
    let again = out.to_fabric.iter().map(|frame| {
        assert!(is_right(frame));
        let Parsed { segment, .. } = parse(frame, Direction::FromGuest).expect("TCP");
        (segment.seq - first.seq, segment.payload_bytes)
    });
    let pieces = (0..3).flat_map(|number| {
        let at = number * 1440;
        [(at, SMALL_BYTES), (at + SMALL_BYTES, 1440 - SMALL_BYTES)]
    });
    assert!(again.eq(pieces));
}

/// The grace begins with the port's first frame. A rule that begins to police has one of its own.
#[test]
fn data_of_unknown_connections_is_dropped_once_the_grace_is_over() {
    const GRACE_S: u64 = 300;
    let policing = |p: &mut sys::vcc_params| p.police = 1;
    let mut talk = Talk::new(Params::with(policing));
    talk.wait(1_000_000 * NS_PER_S);
    let verdict = |talk: &mut Talk| {
        let data = Packet { payload: payload(100), ..talk.segment(true) };
        talk.send(true, framed(&data)).0
    };
    assert_eq!(verdict(&mut talk), Verdict::Pass);
    talk.wait((GRACE_S - 1) * NS_PER_S);
    assert_eq!(verdict(&mut talk), Verdict::Pass);
    talk.wait(NS_PER_S);
    assert_eq!(verdict(&mut talk), Verdict::Drop);
    talk.pass(true, &talk.segment(true));

    let rules = |police: u8| {
        let params = Params::with(|p| p.police = police);
        let rules = vec![Rule { name: "default".into(), params }];
        Rules { rules, judge: Arc::new(|_, _| 0), pools: Vec::new(), polices: police != 0 }
    };
    talk.port.set_rules(rules(1));
    assert_eq!(verdict(&mut talk), Verdict::Drop, "it is no new port");
    talk.port.set_rules(rules(0));
    assert_eq!(verdict(&mut talk), Verdict::Pass);
    talk.port.set_rules(rules(1));
    assert_eq!(verdict(&mut talk), Verdict::Pass);
    talk.wait((GRACE_S - 1) * NS_PER_S);
    talk.port.set_rules(rules(1));
    assert_eq!(verdict(&mut talk), Verdict::Pass);
    talk.wait(NS_PER_S);
    assert_eq!(verdict(&mut talk), Verdict::Drop, "the rule is the same");
    let counters = talk.port.counters();
    let counted = [sys::COUNT_UNKNOWN, sys::COUNT_UNKNOWN_DROPPED].map(|it| counters.get(it));
    assert_eq!(counted, [6, 3]);
}

/// Data is stored for a guest without buffers in its ring, and its connection forgotten.
#[test]
fn a_forgotten_flow_waits_for_no_room() {
    let mut talk = Talk::new(Params::with(|params| params.receive = sys::RECEIVE_BUFFER as u8));
    talk.open(&[]);
    talk.data_from_guest();
    talk.pass(false, &talk.segment(false));
    let ring = ReceiveRing { size_segs: 256, free_segs: 0, behind_segs: 0 };
    talk.port.set_room(talk.now_ns, ring, &mut Out::default());
    let data = Packet { payload: payload(MSS_BYTES), ..talk.segment(false) };
    let mut frame = framed(&data);
    // To the guest on the link, too.
    frame.bytes[..12].rotate_left(6);
    let (verdict, ..) = talk.cross(false, frame);
    assert_eq!(verdict, Verdict::Held);
    assert!(talk.port.snooping.waits_for_room());
    let id = talk.port.core.table.find(&talk.key()).expect("a flow");
    talk.port.forget(id);
    assert!(!talk.port.snooping.waits_for_room());
}
