//! What two vcc ends say to each other: options added and taken away, and FACKs.

use vcc_engine::{Treatment, sys};
use vcc_port::{AttachOptions, testing};

use crate::checksum;
use crate::conversation::{Conversation, MSS_BYTES, Shape};
use crate::dual::Direction::{FromGuest, ToGuest};
use crate::dual::{DualRun, Outcome, usual, usually};
use crate::layout::Layout;
use crate::packet::{Packet, options, payload};
use crate::wire::*;

/// So many ECN-capable bytes are reported as this: the counter starts at 1 (RFC 9768, 3.2.1).
const ECT0_INITIAL: u32 = 1;
/// What a FACK is from its TCP header on.
const FACK_BYTES: usize = TCP_BYTES + 12;

/// A handshake in which both ends are under vcc.
fn open_agreed(c: &mut Conversation) {
    let opener = c.opener();
    let mut syn = c.connection.syn();
    if opener == ToGuest {
        syn.flags |= ECE | CWR;
        syn.options.extend(options::hello(HELLO_OFFER));
    }
    c.send_packet(opener, 0, &syn);
    let mut syn_ack = c.connection.syn_ack();
    if opener == FromGuest {
        syn_ack.flags |= ECE;
        syn_ack.options.extend(options::hello(HELLO_ACCEPT));
    }
    c.send_packet(opener.other(), 0, &syn_ack);
    c.ack(opener);
    assert!(c.state().has(sys::FLOW_FEEDBACK), "{}", c.run.doing);
}

/// An agreed flow of every shape, with timestamps and without.
fn with_agreed(attach: &AttachOptions, test: impl Fn(&mut Conversation)) {
    if !testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(attach);
    let mut guest_port = 20_000;
    for shape in Shape::all() {
        for timestamps in [false, true] {
            guest_port += 1;
            run.doing = format!("{shape:?}, timestamps {timestamps}");
            let mut c = Conversation::new(&mut run, shape, guest_port);
            c.connection.offers.timestamps = timestamps;
            open_agreed(&mut c);
            test(&mut c);
        }
    }
    run.assert_all();
}

/// Data of the peer makes a report due.
fn make_due(c: &mut Conversation, bytes: usize, ecn: u8) {
    c.send(ToGuest, |p| (p.traffic_class, p.payload) = (ecn, payload(bytes)));
}

/// The guest's data, and the counters of an honest peer that got it.
fn sent_and_heard(c: &mut Conversation) -> Vec<u8> {
    c.data(FromGuest, MSS_BYTES);
    let heard = c.state().heard;
    options::pack(heard.ect0_bytes + MSS_BYTES as u32, heard.ce_bytes)
}

fn ends_with(outcome: &Outcome, option: &[u8]) -> bool {
    outcome.options().ends_with(option) && outcome.frame.ends_with(option)
}

fn says_ours(options: &[u8]) -> bool {
    let name = |at: &[u8]| at[0] == OPTION_EXPERIMENT && at[2..4] == EXPERIMENT_NAME;
    options.windows(4).any(|at| (at[0] == OPTION_PACK && at[1] == 8) || name(at))
}

#[test]
fn an_offer_goes_on_the_first_syn_and_its_answer_is_hidden() {
    if !testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    for (shape, guest_port) in Shape::all().filter(|s| s.opener == FromGuest).zip(10_000..) {
        run.doing = format!("{shape:?}");
        let mut c = Conversation::new(&mut run, shape, guest_port);
        let offers = c.connection.syn().options;
        let iss = c.connection.guest_next;
        let syn = c.syn(0);
        assert_eq!(syn.options(), [offers.clone(), options::hello(HELLO_OFFER)].concat());
        // A middlebox may mind it: once only.
        c.connection.guest_next = iss;
        assert_eq!(c.syn(0).options(), offers);
        let mut answer = c.connection.syn_ack();
        answer.flags |= ECE;
        answer.options.extend(options::hello(HELLO_ACCEPT));
        let shown = c.send_packet(ToGuest, 0, &answer);
        assert_eq!((shown.options().len(), shown.flags()), (offers.len(), SYN | ACK));
    }
    run.assert_all();
}

#[test]
fn an_offer_of_the_peer_is_hidden_and_answered() {
    if !testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    for (shape, guest_port) in Shape::all().filter(|s| s.opener == ToGuest).zip(10_000..) {
        run.doing = format!("{shape:?}");
        let mut c = Conversation::new(&mut run, shape, guest_port);
        let mut syn = c.connection.syn();
        syn.flags |= ECE | CWR;
        syn.options.extend(options::hello(HELLO_OFFER));
        let shown = c.send_packet(ToGuest, 0, &syn);
        assert!(!says_ours(shown.options()));
        let iss = c.connection.guest_next;
        for _ in 0..2 {
            c.connection.guest_next = iss;
            assert!(ends_with(&c.syn_ack(0), &options::hello(HELLO_ACCEPT)));
        }
        c.ack(ToGuest);
        assert!(c.state().has(sys::FLOW_FEEDBACK));
    }
    run.assert_all();
}

/// Up to 32 bytes of options leave room. Behind the end of the list nobody looks, so it moves.
#[test]
fn an_offer_takes_what_room_there_is() {
    if !testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    let mss = options::mss(1460);
    let ended = [vec![OPTION_END], vec![0x77; 3]].concat();
    for (guest_port, words) in (10_000..).zip(0..9) {
        for (end, guest_port) in [(false, guest_port), (true, guest_port + 100)] {
            run.doing = format!("{words} words, ended {end}");
            let mut c = Conversation::new(&mut run, Shape::plain(FromGuest), guest_port);
            let mut syn = c.connection.syn();
            let tail = if end { ended.clone() } else { options::nops(4) };
            syn.options = [mss.clone(), options::nops(4 * words), tail].concat();
            let offers = [mss.clone(), options::nops(4 * words + 4)].concat();
            let out = c.send_packet(FromGuest, 0, &syn);
            let room = offers.len() <= 32;
            let expected = match room {
                true => [offers, options::hello(HELLO_OFFER)].concat(),
                false => syn.options,
            };
            assert_eq!(out.options(), expected, "{}", c.run.doing);
            assert_eq!(c.state().has(sys::FLOW_HELLO_OFFERED), room);
        }
    }
    run.assert_all();
}

/// RFC 7413: the option would stand where the data is.
#[test]
fn no_offer_goes_on_a_syn_with_data() {
    if !testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    for ipv6 in [false, true] {
        let shape = Shape { ipv6, ..Shape::plain(FromGuest) };
        let mut c = Conversation::new(&mut run, shape, 10_000);
        let mut syn = c.connection.syn();
        syn.payload = payload(300);
        let out = c.send_packet(FromGuest, 0, &syn);
        assert_eq!(out.options(), syn.options);
        assert!(out.frame.ends_with(&syn.payload));
        assert_eq!(out.flags(), SYN | ECE | CWR);
    }
    run.assert_all();
}

/// On whatever options the guest's ACK has, or beside it, if they leave no room.
#[test]
fn a_report_goes_on_pure_acks() {
    let blocks = |count: u32| {
        let blocks: Vec<_> = (1..=count).map(|i| (i * 3000, i * 3000 + 1448)).collect();
        options::sack(&blocks)
    };
    let stamps = || options::timestamps(7, 8);
    let ended = || [vec![OPTION_END], vec![0x99; 3]].concat();
    let layouts = [
        vec![],
        vec![options::nops(2), stamps()],
        vec![stamps(), options::nops(2)],
        vec![options::nops(1), stamps(), options::nops(1)],
        vec![options::nops(2), stamps(), options::nops(2), blocks(1)],
        vec![options::nops(2), blocks(3)],
        vec![options::nops(2), stamps(), options::nops(2), blocks(2)],
        vec![options::nops(2), stamps(), options::nops(2), blocks(3)],
        vec![options::nops(2), blocks(4)],
        vec![ended()],
        vec![options::nops(2), stamps(), ended()],
    ];
    with_agreed(&usual(), |c| {
        let (mut ect0_bytes, mut ce_bytes) = (ECT0_INITIAL, 0);
        for (bytes, layout) in (1..).map(|i| i * 100).zip(&layouts) {
            for ecn in [ECT_0, ECT_1, CE] {
                make_due(c, bytes, ecn);
                *(if ecn == CE { &mut ce_bytes } else { &mut ect0_bytes }) += bytes as u32;
                let own = layout.concat();
                let room = own.len() <= 32;
                let out = c.send(FromGuest, |p| p.options = own.clone());
                let pack = options::pack(ect0_bytes, ce_bytes);
                let fack = options::fack(ect0_bytes, ce_bytes);
                assert_eq!(ends_with(&out, &pack), room, "{}: {own:02x?}", c.run.doing);
                assert_eq!(out.fack.is_some(), !room);
                assert!(out.fack.is_none_or(|frame| frame.ends_with(&fack)));
                // Once.
                let again = c.send(FromGuest, |p| p.options = own.clone());
                assert!(!says_ours(again.options()) && again.fack.is_none());
            }
        }
    });
}

/// Ethernet fills a short frame up to 60 bytes: the option takes the padding's place.
#[test]
fn padding_behind_an_ack_is_no_part_of_it() {
    with_agreed(&usual(), |c| {
        for padding in [1, 2, 6, 7, 8, 9, 14, 100] {
            make_due(c, 100, CE);
            let out = c.send(FromGuest, |p| p.padding = vec![0xa5; padding]);
            assert_eq!(out.action.emit, sys::EMIT_PACK as u8);
            assert_eq!(out.frame.len(), out.at.end);

            let pack = sent_and_heard(c);
            let own = c.connection.packet(ToGuest).options;
            let out = c.send(ToGuest, |p| {
                p.options.extend(&pack);
                p.padding = vec![0xa5; padding];
            });
            assert_eq!((out.options(), out.frame.len()), (&own[..], out.at.end));
            // Where nothing is cut off the padding stays.
            let pack = sent_and_heard(c);
            let out = c.send(ToGuest, |p| {
                p.options = options::join(&[pack.clone(), options::nops(1)]);
                p.padding = vec![0xa5; padding];
            });
            assert_eq!(out.frame.len(), out.at.end + padding);
        }
    });
}

/// Beside data, also of super-segments: an ACK of one byte less, header and option alone.
#[test]
fn a_fack_goes_beside_data() {
    let underlay = "dctcp".parse().expect("one");
    with_agreed(&usually(Treatment { underlay, ..Treatment::default() }), |c| {
        for (bytes, gso_size) in [(1, 0), (MSS_BYTES, 0), (3000, 1448), (3000, 1000)] {
            for flags in [ACK, ACK | PSH, ACK | FIN, ACK | URG, ACK | ECE | CWR] {
                make_due(c, 500, CE);
                let ack = c.connection.peer_next;
                let out = c.send_gso(FromGuest, gso_size, |p| {
                    p.payload = payload(bytes);
                    p.flags = flags;
                    p.traffic_class = 0xb8;
                });
                // FINs that repeat.
                c.connection.guest_next -= u32::from(flags & FIN != 0);
                assert!(out.frame.ends_with(&payload(bytes)));
                let fack = out.fack.expect("a FACK");
                let at = Layout::of(&fack, 0).expect("well-formed");
                assert_eq!(fack.len(), at.l4 + FACK_BYTES);
                assert_eq!((at.payload, at.end), (fack.len(), fack.len()));
                assert_eq!(at.flags(&fack), ACK);
                assert_eq!(read_u32(&fack, at.l4 + 8), ack - 1);
                assert_eq!(at.traffic_class(&fack), 0xb8 | ECT_0, "its class as the data's");
                assert!(checksum::verify(&fack, &at));
            }
        }
    });
}

/// A report waits for two segments' worth, or a mark.
#[test]
fn little_that_came_unmarked_waits() {
    with_agreed(&usual(), |c| {
        let mss = usize::from(c.state().mss_bytes);
        make_due(c, mss, ECT_0);
        assert!(c.data(FromGuest, 10).fack.is_none());
        make_due(c, mss - 1, ECT_0);
        assert!(c.data(FromGuest, 10).fack.is_none());
        make_due(c, 1, ECT_0);
        assert!(c.data(FromGuest, 10).fack.is_some());
        make_due(c, 1, 0);
        assert!(c.data(FromGuest, 10).fack.is_none(), "not ECN-capable, not counted");
        make_due(c, 1, CE);
        assert!(c.data(FromGuest, 10).fack.is_some());
        make_due(c, 1, ECT_0);
        assert!(ends_with(&c.ack(FromGuest), &options::pack(ECT0_INITIAL + 2 * mss as u32 + 1, 1)));
    });
}

/// IPv4 options and IPv6 extension headers stay in front of the FACK.
#[test]
fn a_fack_follows_ip_headers() {
    with_agreed(&usual(), |c| {
        for words in 1..=10 {
            make_due(c, 500, CE);
            let out = c.send(FromGuest, |p| {
                p.ip_options = [vec![148, 4], vec![0; 4 * words - 2]].concat();
                // PadN (RFC 8200, 4.2).
                let fill = vec![0; 8 * words - 4];
                let rest = [vec![words as u8 - 1, 1, fill.len() as u8], fill].concat();
                p.extensions = vec![(PROTOCOL_DESTINATION, rest)];
                p.payload = payload(900);
            });
            let fack = out.fack.expect("a FACK");
            assert_eq!(Layout::of(&fack, 0).expect("well-formed").end, fack.len());
        }
    });
}

/// Beyond 64 KiB the IP header of a super-segment has no length (RFC 2675); its FACK's has one.
#[test]
fn a_fack_beside_a_big_super_segment() {
    with_agreed(&usual(), |c| {
        make_due(c, 500, CE);
        let mut packet = c.connection.packet(FromGuest);
        packet.payload = payload(2 * MSS_BYTES);
        let mut frame = packet.frame();
        let ip = if packet.tags.is_empty() { 14 } else { 18 };
        write_u16(&mut frame, if c.connection.shape.ipv6 { ip + 4 } else { ip + 2 }, 0);
        checksum::fill(&mut frame);
        let out = c.run.send(FromGuest, &frame, MSS_BYTES as u32).expect("a segment");
        let fack = out.fack.expect("a FACK");
        assert!(checksum::verify(&fack, &Layout::of(&fack, 0).expect("whole")));
    });
}

/// A clone of whose flow nothing is known any more, or that is no TCP, is not let out.
#[test]
fn a_clone_without_a_flow_is_dropped() {
    if !testing::can_attach() {
        return;
    }
    let run = DualRun::new(&usual());
    let connection = crate::conversation::Connection::new(Shape::plain(FromGuest), 20_000);
    let mut data = connection.packet(FromGuest);
    data.payload = payload(100);
    let mut fragment = data.frame();
    fragment[ETHERNET_BYTES + 6] = 0x20;
    for frame in [data.frame(), fragment] {
        let output = run.datapath.run_clone(&frame, 0).expect("it runs");
        assert_eq!(output.return_value, crate::dual::DROP);
    }
}

/// At the very end of a pure ACK it is cut off, anywhere else it turns into NOPs.
#[test]
fn reports_leave_what_the_guest_gets() {
    with_agreed(&usual(), |c| {
        let stamps = options::timestamps(7, 8);
        for before in 0..12 {
            for after in 0..8 {
                for bytes in [0, 700] {
                    let pack = sent_and_heard(c);
                    let parts = [options::nops(before), pack, options::nops(after), stamps.clone()];
                    let last = [options::nops(before), stamps.clone(), options::nops(after)];
                    for parts in [parts.to_vec(), [&last[..], &parts[1..2]].concat()] {
                        let own = options::join(&parts);
                        if own.len() > 40 {
                            continue;
                        }
                        let out = c.send(ToGuest, |p| {
                            p.options = own.clone();
                            p.payload = payload(bytes);
                        });
                        assert!(!says_ours(out.options()), "{own:02x?}");
                        let is_last = own.ends_with(&parts[parts.len() - 1])
                            && parts[parts.len() - 1][0] == OPTION_PACK;
                        let cut = if is_last && bytes == 0 { 8 } else { 0 };
                        assert_eq!(out.options().len(), own.len() - cut, "{own:02x?}");
                    }
                }
            }
        }
        assert!(c.state().has(sys::FLOW_FEEDBACK_HEARD));
        assert_eq!(c.state().forged, 0);
    });
}

/// All of them, where there are several; the last one counts.
#[test]
fn several_options_of_ours_leave_together() {
    with_agreed(&usual(), |c| {
        let pack = sent_and_heard(c);
        for own in [
            [options::pack(0, 0), pack.clone()].concat(),
            [options::hello(HELLO_OFFER), pack.clone()].concat(),
            [options::pack(5, 5), options::hello(HELLO_ACCEPT), options::nops(4), pack].concat(),
        ] {
            for from in [ToGuest, FromGuest] {
                let out = c.send(from, |p| p.options = own.clone());
                assert_eq!(out.options(), options::nops(own.len()), "{from:?}");
            }
        }
    });
}

/// A kind of ours of another length or version is no report; and not for the guest either.
#[test]
fn what_is_not_quite_ours_leaves_too() {
    with_agreed(&usual(), |c| {
        c.connection.offers.timestamps = false;
        for length in 2..=40u8 {
            let body = |head: &[u8]| {
                let mut option = head.to_vec();
                option.resize(length.into(), 9);
                options::join(&[option])
            };
            let named = [&[OPTION_EXPERIMENT, length], &EXPERIMENT_NAME[..]].concat();
            let mut bad = vec![];
            if length != 8 {
                bad.push(body(&[OPTION_PACK, length]));
            }
            if length >= 4 {
                bad.push(body(&named));
            }
            if length >= 6 {
                bad.push(body(&[&named[..], &[VERSION + 1, FACK]].concat()));
                bad.push(body(&[&named[..], &[VERSION, 4]].concat()));
            }
            for own in bad {
                for from in [ToGuest, FromGuest] {
                    let forged = c.state().forged;
                    let out = c.send(from, |p| p.options = own.clone());
                    let rest = own.len() - usize::from(length);
                    let expected = [options::nops(length.into()), options::nops(rest)].concat();
                    assert_eq!(out.options(), expected, "{own:02x?}");
                    assert_eq!(c.state().forged, forged.saturating_add(1), "{own:02x?}");
                }
            }
            // Another's experiment by the same kind (RFC 6994).
            if length >= 4 {
                let other = body(&[OPTION_EXPERIMENT, length, 0xf9, 0x89]);
                for from in [ToGuest, FromGuest] {
                    assert_eq!(c.send(from, |p| p.options = other.clone()).options(), other);
                }
            }
        }
    });
}

/// Malformed options are nobody's: they are neither believed nor removed.
#[test]
fn options_of_ours_past_the_end_are_not_read() {
    with_agreed(&usual(), |c| {
        for own in [
            [options::nops(1), options::pack(7, 7)[..7].to_vec()].concat(),
            [options::nops(2), options::fack(7, 7)[..10].to_vec()].concat(),
            vec![OPTION_NOP, OPTION_NOP, OPTION_PACK, 8],
            vec![OPTION_NOP, OPTION_NOP, OPTION_NOP, OPTION_PACK],
            vec![OPTION_EXPERIMENT, 8, b'v', b'c'],
            [vec![OPTION_PACK, 1], options::nops(6)].concat(),
            [vec![OPTION_EXPERIMENT, 0], options::nops(6)].concat(),
        ] {
            for from in [ToGuest, FromGuest] {
                let heard = c.state().heard;
                let out = c.send(from, |p| p.options = own.clone());
                assert_eq!(out.options(), own, "{from:?}");
                assert_eq!(c.state().heard, heard, "{own:02x?}");
            }
        }
    });
}

/// Whatever the guest says in these options was agreed with nobody. Its own report is ours.
#[test]
fn a_guest_cannot_speak_for_vcc() {
    with_agreed(&usual(), |c| {
        let own = [
            options::pack(1 << 20, 1 << 20),
            options::hello(HELLO_OFFER),
            options::hello(HELLO_ACCEPT),
            options::fack(77, 1 << 23),
        ];
        for option in own {
            for (bytes, due) in [(0, false), (0, true), (100, false), (100, true)] {
                if due {
                    make_due(c, 300, CE);
                }
                let (counted, forged) = (c.state().counted, c.state().forged);
                let out = c.send(FromGuest, |p| {
                    p.options = option.clone();
                    p.payload = payload(bytes);
                });
                let ours = options::pack(counted.ect0_bytes, counted.ce_bytes);
                let mut expected = options::nops(option.len());
                if due && bytes == 0 {
                    expected.extend(ours);
                }
                assert_eq!(out.options(), expected);
                assert_eq!(out.fack.is_some(), due && bytes > 0);
                assert_eq!(c.state().forged, forged + 1);
            }
        }
    });
    if !testing::can_attach() {
        return;
    }
    // Nor in its SYNs: what is there is taken away before ours is added.
    let mut run = DualRun::new(&usual());
    let mut c = Conversation::new(&mut run, Shape::plain(FromGuest), 10_000);
    let mut syn = c.connection.syn();
    syn.options = [options::mss(1460), options::hello(HELLO_ACCEPT)].concat();
    let out = c.send_packet(FromGuest, 0, &syn);
    let expected = [options::mss(1460), options::nops(8), options::hello(HELLO_OFFER)].concat();
    assert_eq!(out.options(), expected);
    run.assert_all();
}

/// Nobody agreed to anything: what comes is taken away, counted, and not read.
#[test]
fn a_peer_that_did_not_agree_is_not_heard() {
    if !testing::can_attach() {
        return;
    }
    for feedback in [false, true] {
        let mut run = DualRun::new(&usually(Treatment { feedback, ..Treatment::default() }));
        for (shape, guest_port) in Shape::all().zip(10_000..) {
            run.doing = format!("{shape:?}");
            let mut c = Conversation::new(&mut run, shape, guest_port);
            c.open();
            for option in [options::pack(5000, 4000), options::fack(5000, 4000)] {
                for bytes in [0, 100] {
                    c.data(FromGuest, MSS_BYTES);
                    let own = [c.connection.packet(ToGuest).options, option.clone()].concat();
                    let out = c.send(ToGuest, |p| {
                        p.options = own.clone();
                        p.payload = payload(bytes);
                    });
                    assert!(!out.dropped && !says_ours(out.options()));
                    assert_eq!(c.state().snd_una, c.connection.guest_next, "it is an ACK");
                }
            }
            let state = c.state();
            assert_eq!((state.forged, state.marks), (4, 0));
            assert_eq!((state.heard.ect0_bytes, state.heard.ce_bytes), (0, 0));
            make_due(&mut c, 3000, CE);
            assert!(!says_ours(c.ack(FromGuest).options()));
            assert!(c.data(FromGuest, 10).fack.is_none());
        }
        run.assert_all();
    }
}

/// What a far end makes of its counters, ECT(0) and CE.
type Lie = fn(u32, u32) -> (u32, u32);

/// Counters that run back, or count what was never sent: not believed, now or later.
#[test]
fn impossible_counters_end_the_belief() {
    let lies: [Lie; 4] = [
        |ect0_bytes, ce_bytes| (ect0_bytes.wrapping_sub(1), ce_bytes),
        |ect0_bytes, ce_bytes| (ect0_bytes, ce_bytes.wrapping_sub(1)),
        |ect0_bytes, ce_bytes| (ect0_bytes + (1 << 20), ce_bytes),
        |ect0_bytes, ce_bytes| (ect0_bytes, ce_bytes + (1 << 20)),
    ];
    for lie in lies {
        with_agreed(&usual(), |c| {
            let pack = sent_and_heard(c);
            c.send(ToGuest, |p| p.options.extend(&pack));
            c.data(FromGuest, MSS_BYTES);
            let heard = c.state().heard;
            let (ect0_bytes, ce_bytes) = lie(heard.ect0_bytes, heard.ce_bytes);
            let (ect0_bytes, ce_bytes) = (ect0_bytes & COUNTER_MASK, ce_bytes & COUNTER_MASK);
            let out = c.send(ToGuest, |p| p.options.extend(options::pack(ect0_bytes, ce_bytes)));
            assert!(!says_ours(out.options()));
            assert_eq!(c.state().forged, 1);
            assert!(c.state().has(sys::FLOW_FEEDBACK_LOST));
            let pack = sent_and_heard(c);
            c.send(ToGuest, |p| p.options.extend(&pack));
            assert_eq!(c.state().heard.ect0_bytes, heard.ect0_bytes);
        });
    }
}

/// A FACK is for us alone. With payload it is a segment like others, but for its option.
#[test]
fn a_fack_does_not_reach_the_guest_and_payload_does() {
    with_agreed(&usual(), |c| {
        c.data(FromGuest, MSS_BYTES);
        let fack = |ect0_bytes| options::fack(ect0_bytes, 0);
        let ack = c.connection.guest_next.wrapping_sub(1);
        let out = c.send(ToGuest, |p| (p.ack, p.options) = (ack, fack(1001)));
        assert_eq!(u32::from(out.action.verdict), sys::VCC_CONSUME);
        assert!(out.dropped);
        assert_eq!(c.state().heard.ect0_bytes, 1001);
        let out = c.send(ToGuest, |p| (p.options, p.payload) = (fack(1002), payload(100)));
        assert!(!out.dropped && out.frame.ends_with(&payload(100)));
        assert_eq!(out.options(), options::nops(12));
        assert_eq!(c.state().rcv_nxt, c.connection.peer_next);
    });
}

/// A guest that speaks AccECN has that kind for its own (RFC 9768, 3.2.3).
#[test]
fn the_options_of_an_accecn_guest_are_its_own() {
    if !testing::can_attach() {
        return;
    }
    let mut run = DualRun::new(&usual());
    let mut c = Conversation::new(&mut run, Shape::plain(FromGuest), 10_000);
    let syn = c.syn(AE | CWR | ECE);
    assert!(!says_ours(syn.options()));
    c.syn_ack(AE | CWR);
    for from in [FromGuest, ToGuest] {
        let own = options::pack(100, 200);
        let put = |p: &mut Packet| (p.options, p.payload) = (own.clone(), payload(10));
        assert_eq!(c.send(from, put).options(), own);
    }
    assert_eq!(c.state().forged, 0);
    run.assert_all();
}
