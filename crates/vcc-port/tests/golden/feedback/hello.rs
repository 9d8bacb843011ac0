//! Offers of feedback in handshakes.

use vcc_engine::sys;
use vcc_frames::wire::*;
use vcc_frames::{options, payload};

use super::*;
use crate::conversation::{Conversation, Shape};
use crate::direction::Direction::{FromGuest, ToGuest};
use crate::dual::DualRun;
use crate::setup::usual;

#[test]
fn an_offer_goes_on_the_first_syn_and_its_answer_is_hidden() {
    if !vcc_testing::can_attach() {
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
    if !vcc_testing::can_attach() {
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
    if !vcc_testing::can_attach() {
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
    if !vcc_testing::can_attach() {
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
        assert_eq!(out.flags(), SYN | AE | ECE | CWR);
    }
    run.assert_all();
}
