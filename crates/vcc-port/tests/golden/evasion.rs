//! Segments of a guest that tries to evade vcc. Receivers accept them, so they are translated like
//! all others.

use vcc_engine::{Params, sys};
use vcc_frames::wire::*;
use vcc_frames::{Packet, icmp, options, payload};
use vcc_port::counters;

use crate::conversation::{Conversation, MSS_BYTES, Shape};
use crate::direction::Direction::{self, FromGuest, ToGuest};
use crate::dual::DualRun;
use crate::setup::{usual, usually};

/// Malformed options, padded to four bytes. A receiver reads nothing behind them.
fn malformed() -> Vec<Vec<u8>> {
    let hidden = [vec![254, 0], options::wscale(9), options::mss(99), vec![1, 1, 1]].concat();
    vec![
        vec![1, 1, 254, 0],
        vec![1, 1, 1, 254],
        vec![1, 254, 1, 0],
        vec![1, 1, 8, 10],
        vec![3, 4, 7, 3, 3, 255, 0, 0],
        hidden,
    ]
}

#[test]
fn a_malformed_option_hides_no_connection() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    let mut guest_ports = 20_000..;
    for opener in [FromGuest, ToGuest] {
        for tail in malformed() {
            run.doing = format!("{opener:?}, {tail:02x?}");
            let guest_port = guest_ports.next().expect("a port");
            let mut c = Conversation::new(&mut run, Shape::plain(opener), guest_port);
            let offer = options::join(&[options::mss(1460), options::wscale(7)]);
            let with_tail = [offer, tail].concat();
            let mut syn = c.connection.syn();
            syn.options = with_tail.clone();
            let asked = c.send_packet(opener, 0, &syn);
            let mut syn_ack = c.connection.syn_ack();
            syn_ack.flags |= asked.flags() & ECE;
            syn_ack.options = with_tail;
            c.send_packet(opener.other(), 0, &syn_ack);
            c.ack(opener);
            assert!(c.state().is_managed() && c.state().has(sys::FLOW_WSCALE), "{}", c.run.doing);
            assert!(!c.state().has(sys::FLOW_HELLO_OFFERED), "nobody would read our offer");
            c.data(FromGuest, MSS_BYTES);
            let ack = c.ack(ToGuest);
            assert!(ack.window() < 502 << 2, "{}", c.run.doing);
        }
    }
    run.assert_all();
}

/// A window scale before a malformed option counts, one behind it does not.
#[test]
fn the_scale_is_the_one_that_an_end_reads() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    let cases = [
        (vec![OPTION_WSCALE, 3, 7, 254], Some(7)),
        (vec![254, 0, OPTION_WSCALE, 3, 7, 1, 1, 1], None),
        (vec![254, 9, OPTION_WSCALE, 3, 7, 1, 1, 1], None),
        (vec![OPTION_WSCALE, 3, 7, OPTION_WSCALE, 3, 9, 254, 0], Some(9)),
        (vec![OPTION_WSCALE, 3, 7, OPTION_WSCALE, 0, 9, 1, 1], Some(7)),
    ];
    for ((offered, scale), guest_port) in cases.into_iter().zip(20_000..) {
        run.doing = format!("{offered:02x?}");
        let mut c = Conversation::new(&mut run, Shape::plain(ToGuest), guest_port);
        c.send(ToGuest, |p| (p.flags, p.ack, p.options) = (SYN, 0, offered));
        assert_eq!(c.state().has(sys::FLOW_WSCALE), scale.is_some(), "{}", c.run.doing);
        assert_eq!(c.state().wscale_peer, scale.unwrap_or(0), "{}", c.run.doing);
    }
    run.assert_all();
}

/// Less than a segment, more than half of one.
const HALF_BYTES: usize = 1000;

/// A connection whose guest has used up the window of the SYN-ACK, and whose window is one segment.
fn policed(run: &mut DualRun, guest_port: u16) -> Conversation<'_> {
    let mut c = Conversation::new(run, Shape::plain(FromGuest), guest_port);
    let mut syn_ack = c.connection.syn_ack();
    syn_ack.window = MSS_BYTES as u16;
    c.syn(0);
    syn_ack.ack = c.connection.guest_next;
    c.send_packet(ToGuest, 0, &syn_ack);
    c.ack(FromGuest);
    for _ in 0..3 {
        assert!(!c.data(FromGuest, HALF_BYTES).dropped);
        c.ack(ToGuest);
    }
    c
}

fn policing() -> Params {
    Params::with(|p| {
        p.police = 1;
        p.window_cap_bytes = MSS_BYTES as u32;
    })
}

/// Options that must not take a segment out of control, on data and on ACKs.
fn disguises() -> Vec<Vec<u8>> {
    let signatures = [
        [vec![19, 18], vec![7; 16], vec![1; 2]].concat(),
        [vec![29, 16], vec![7; 14]].concat(),
        vec![29, 2, 1, 1],
    ];
    malformed().into_iter().chain(signatures).collect()
}

#[test]
fn data_beyond_the_window_passes_in_no_disguise() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usually(policing()));
    for (disguise, guest_port) in disguises().into_iter().zip(20_000..) {
        run.doing = format!("{disguise:02x?}");
        let mut c = policed(&mut run, guest_port);
        let mut sent = [0, 0];
        for _ in 0..4 {
            let out = c.send(FromGuest, |p| {
                (p.options, p.payload) = (disguise.clone(), payload(HALF_BYTES));
            });
            sent[usize::from(out.dropped)] += 1;
        }
        assert_eq!(sent, [1, 3], "{}", c.run.doing);
    }
    run.assert_all();
}

#[test]
fn an_ack_lifts_no_window_in_any_disguise() {
    if !vcc_testing::can_attach() {
        return;
    }
    let params = Params::with(|p| p.window_cap_bytes = 2 * MSS_BYTES as u32);
    let mut run = DualRun::new(&usually(params));
    for (disguise, guest_port) in disguises().into_iter().zip(20_000..) {
        run.doing = format!("{disguise:02x?}");
        let mut c = policed(&mut run, guest_port);
        c.data(FromGuest, MSS_BYTES);
        let out = c.send(ToGuest, |p| (p.options, p.window) = (disguise, 0xffff));
        let shown_bytes = u32::from(out.window()) << c.state().wscale_shown;
        assert_eq!(shown_bytes, 2 * u32::from(c.state().mss_bytes), "{}", c.run.doing);
    }
    run.assert_all();
}

/// A signature on the SYN does not take a connection out of control; only a SYN-ACK that is signed
/// as well does.
#[test]
fn a_connection_is_signed_by_both_ends() {
    if !vcc_testing::can_attach() {
        return;
    }
    let signature = || [vec![29, 16], vec![7; 14]].concat();
    let mut run = DualRun::new(&usual());
    for (ecn, guest_port) in [(0, 20_000), (ECE | CWR, 20_001), (ECE | CWR | AE, 20_002)] {
        run.doing = format!("{ecn:#x}");
        let mut c = Conversation::new(&mut run, Shape::plain(FromGuest), guest_port);
        let mut syn = c.connection.syn();
        syn.flags |= ecn;
        syn.options.extend(signature());
        for _ in 0..2 {
            let out = c.send_packet(FromGuest, 0, &syn);
            assert_eq!(out.frame, syn.frame(), "it would be signed no more");
        }
        assert_eq!(c.state().has(sys::FLOW_ECN_ASKED), ecn != 0);
        // This answers another connection's SYN.
        let mut stray = c.connection.syn_ack();
        stray.ack = stray.ack.wrapping_add(9);
        stray.options.extend(signature());
        c.send_packet(ToGuest, 0, &stray);
        let mut answer = c.connection.syn_ack();
        answer.options.extend(signature());
        let signed = guest_port == 20_000;
        if !signed {
            answer.options.truncate(20);
        }
        let out = c.send_packet(ToGuest, 0, &answer);
        assert_eq!(signed, out.frame == answer.frame() && out.action.forget != 0);
        if signed {
            assert!(c.run.state(&c.connection.key()).is_none());
            // Segments that follow belong to no flow.
            for (from, flags) in [(FromGuest, ACK), (ToGuest, ACK), (ToGuest, SYN | ACK)] {
                let mut packet = c.connection.packet(from);
                packet.flags = flags;
                packet.options = signature();
                assert!(c.run.send(from, &packet.frame(), 0).is_none());
            }
        }
    }
    // A signed SYN of the peer creates no flow.
    let mut c = Conversation::new(&mut run, Shape::plain(ToGuest), 20_009);
    let mut syn = c.connection.syn();
    syn.options.extend(signature());
    c.connection.sent(ToGuest, &syn);
    assert!(c.run.send(ToGuest, &syn.frame(), 0).is_none());
    let mut syn_ack = c.connection.syn_ack();
    syn_ack.options.extend(signature());
    assert!(c.run.send(FromGuest, &syn_ack.frame(), 0).is_none());
    assert_eq!(run.datapath.counters().expect("counters").get(counters::SIGNED), 5);
    run.assert_all();
}

/// Sends the segment with more flags. Neither end counts a FIN next to a SYN. Returns the flags
/// that arrive.
fn disguised(c: &mut Conversation, from: Direction, packet: Packet, flags: u16) -> u16 {
    c.connection.sent(from, &packet);
    let packet = Packet { flags: packet.flags | flags, ..packet };
    c.run.send(from, &packet.frame(), 0).expect("a segment of a flow").flags()
}

/// Linux in SYN-SENT accepts a SYN-ACK with FIN, and other stacks in LISTEN accept a SYN with FIN.
#[test]
fn a_fin_hides_no_syn() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    let mut guest_ports = 20_000..;
    for opener in [FromGuest, ToGuest] {
        for (on_syn, on_syn_ack) in [(FIN, 0), (0, FIN), (FIN, FIN)] {
            run.doing = format!("{opener:?}, {on_syn}, {on_syn_ack}");
            let guest_port = guest_ports.next().expect("a port");
            let mut c = Conversation::new(&mut run, Shape::plain(opener), guest_port);
            let syn = c.connection.syn();
            let asked = disguised(&mut c, opener, syn, on_syn);
            let syn_ack = c.connection.syn_ack();
            disguised(&mut c, opener.other(), syn_ack, on_syn_ack | asked & ECE);
            c.ack(opener);
            assert!(c.state().is_managed(), "{}", c.run.doing);
        }
    }
    run.assert_all();
}

/// Where the peer has no ECN, what a guest marks as ECT leaves without it, or a queue that marks
/// would spare it.
#[test]
fn no_data_leaves_with_the_guests_own_ecn() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    for (shape, guest_port) in Shape::all().zip(20_000..) {
        let mut c = Conversation::new(&mut run, shape, guest_port);
        c.syn(0);
        c.syn_ack(0);
        c.ack(shape.opener);
        for own in [ECT_0, ECT_1, CE] {
            for length in [0, 100, MSS_BYTES] {
                let left = c.send(FromGuest, |p| {
                    (p.traffic_class, p.payload) = (own, payload(length));
                });
                assert_eq!(left.ecn(), 0, "{shape:?}: {own}, {length} bytes");
            }
        }
    }
    run.assert_all();
}

/// A port in the kernel reads no ICMP: a guest or its peer may forge messages about a connection.
#[test]
fn forged_icmp_moves_no_window() {
    if !vcc_testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usually(policing()));
    let mut c = policed(&mut run, 20_000);
    let mut data = c.connection.packet(FromGuest);
    data.payload = payload(HALF_BYTES);
    let known = |c: &Conversation| {
        let flow = c.state();
        (flow.right_edge, flow.snd_nxt, flow.mss_bytes, flow.cc.cwnd_segs, flow.flags)
    };
    let before = known(&c);
    for mtu_bytes in [0, 68, 576, 1280, 65_535] {
        let mut message = icmp::too_big(&data.frame(), &data.headers(), mtu_bytes, 100);
        for code in [4, 0, 1, 3, 13] {
            message[ETHERNET_BYTES + IPV4_BYTES + 1] = code;
            for from in Direction::BOTH {
                assert!(c.run.send(from, &message, 0).is_none(), "code {code}");
            }
        }
    }
    assert_eq!(known(&c), before);
    let passed = (0..4).filter(|_| {
        let out = c.send(FromGuest, |p| p.payload = payload(HALF_BYTES));
        !out.dropped
    });
    assert_eq!(passed.count(), 1);
    run.assert_all();
}
