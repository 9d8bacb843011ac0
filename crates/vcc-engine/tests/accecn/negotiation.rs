//! The handshake (RFC 9768, 3.1 and 3.2.2).

use super::*;

#[test]
fn a_guest_without_ecn_asks_for_accecn_if_the_policy_says_so() {
    let asks = |params: Params| {
        let syn = Conn::new(params, 5).guest_syn(linux_syn());
        u32::from(syn.flags) & sys::TCP_ECN_BITS
    };
    assert_eq!(asks(Params::default()), sys::TCP_ECN_BITS);
    assert_eq!(asks(classic()), sys::TCP_ECE | sys::TCP_CWR);
    assert_eq!(asks(underlay("cubic")), 0, "an underlay without ECN");
}

#[test]
fn a_synack_settles_which_ecn_it_is() {
    // Table 2: no ECN, classic ECN, AccECN, and a server that reflects the SYN.
    for (bits, accecn, ecn) in [
        (0b000, false, false),
        (0b001, false, true),
        (0b010, true, true),
        (0b011, true, true),
        (0b100, true, true),
        (0b101, true, true),
        (0b110, true, true),
        (0b111, false, false),
    ] {
        let mut conn = Conn::new(Params::default(), 5);
        conn.guest_syn(linux_syn());
        let answer = conn.peer_synack(linux_syn().ace(bits));
        assert_eq!(ace(&answer), 0, "{bits:03b}: the guest asked for none");
        assert_eq!(has_accecn(&conn), accecn, "{bits:03b}");
        assert_eq!(conn.flow.has(sys::FLOW_ECN_FABRIC), ecn, "{bits:03b}");
        // A SYN that left as Not-ECT and arrived as something else: the path changes the field. 101
        // is reserved, and does not report that (3.1.3).
        let sends_ect = ecn && ([0b010, 0b101].contains(&bits) || !accecn);
        let answer = match (sends_ect, accecn) {
            (false, _) => "no",
            (true, false) => "yes",
            (true, true) => "accurate",
        };
        assert_eq!(conn.flow.ecn_fabric(), answer, "{bits:03b}");
        assert_eq!(is_ect0(&conn.send(0, 1000)), sends_ect, "{bits:03b}");
    }
}

#[test]
fn the_first_ack_tells_how_the_synack_arrived() {
    for (ip_ecn, code) in (0..4).zip(CODES) {
        let mut conn = Conn::new(Params::default(), 5);
        conn.guest_syn(linux_syn());
        let mut answer = linux_syn().ace(CODES[0]);
        answer.0.ip_ecn = ip_ecn;
        conn.peer_synack(answer);
        assert_eq!(ace(&conn.guest_acks(0)), u32::from(code));
        // Then the counter, of which a mark on the SYN-ACK is the first.
        let counter = if ip_ecn == 3 { 6 } else { 5 };
        assert_eq!(ace(&conn.guest_acks(0)), counter, "a window update");
        assert_eq!(ace(&conn.send(0, 1000)), counter);
        // A copy of the SYN-ACK is acknowledged again, by how that one arrived.
        conn.peer_synack(linux_syn().ace(CODES[0]).ect0());
        assert_eq!(ace(&conn.guest_acks(0)), u32::from(CODES[2]));
        assert_eq!(ace(&conn.guest_acks(0)), counter);
        conn.guest_gets(conn.ack(1000).ace(5).len(100));
        conn.peer_synack(linux_syn().ace(CODES[0]).ect0());
        assert_eq!(ace(&conn.guest_acks(100)), counter, "this one acknowledges data");
    }
}

#[test]
fn a_listening_guest_accepts_what_the_peer_asks_for() {
    // Any combination but none and classic ECN requests AccECN (3.1.2).
    for (bits, params, expected) in [
        (0b000, Params::default(), 0b000),
        (0b011, Params::default(), 0b001),
        (0b111, Params::default(), 0b010),
        (0b001, Params::default(), 0b010),
        (0b100, Params::default(), 0b010),
        (0b101, Params::default(), 0b010),
        (0b111, classic(), 0b001),
        (0b100, classic(), 0b000),
        (0b111, underlay("cubic"), 0b000),
    ] {
        let mut conn = Conn::new(params, 5);
        conn.peer_syn(linux_syn().ace(bits));
        let answer = conn.guest_synack(linux_syn().room(ROOM_BYTES));
        assert_eq!(ace(&answer), expected, "{bits:03b}");
        assert!(is_not_ect(&answer));
        let accecn = expected == 0b010;
        assert_eq!(emits(&answer, sys::EMIT_PACK), accecn, "does the path let the option through?");
        // The guest repeats it; the option may be why it was lost (3.2.3.2.2).
        let again = conn.guest_synack(linux_syn().room(ROOM_BYTES));
        assert_eq!(ace(&again), expected);
        assert!(emits(&again, sys::EMIT_NOTHING));
        conn.guest_gets(conn.ack(0).ace(2));
        assert_eq!(has_accecn(&conn), accecn);
        let late = conn.guest_synack(linux_syn().room(ROOM_BYTES));
        assert_eq!(ace(&late), expected, "one that crossed its ACK");
    }
}

#[test]
fn a_synack_tells_how_the_syn_arrived() {
    for (ip_ecn, code) in (0..4).zip(CODES) {
        let mut conn = Conn::new(Params::default(), 5);
        let mut syn = linux_syn().asking_accecn();
        syn.0.ip_ecn = ip_ecn;
        conn.peer_syn(syn);
        let answer = conn.guest_synack(linux_syn());
        assert_eq!(ace(&answer), u32::from(code));
        conn.guest_gets(conn.ack(0).ace(2));
        assert_eq!(ace(&conn.guest_acks(0)), 5, "a mark on a SYN does not count (3.2.2.2)");
    }
}

#[test]
fn the_ack_of_a_synack_may_forbid_ect() {
    // Table 4, and 3.2.2.3: vcc's SYN-ACK left as Not-ECT.
    for (code, data, sends_ect) in [
        (0b000, false, false),
        (0b000, true, false),
        (0b010, false, true),
        (0b011, false, false),
        (0b100, false, false),
        (0b110, false, false),
        (0b001, false, true),
        (0b101, false, true),
        (0b111, false, true),
        (0b101, true, true),
        (0b110, true, true),
    ] {
        let mut conn = Conn::new(Params::default(), 5);
        conn.peer_syn(linux_syn().asking_accecn());
        conn.guest_synack(linux_syn());
        let mut ack = conn.ack(0).ace(code);
        if data {
            ack = ack.len(100);
        }
        conn.guest_gets(ack);
        assert!(has_accecn(&conn), "its feedback continues");
        assert_eq!(is_ect0(&conn.send(0, 1000)), sends_ect, "{code:03b}, data {data}");
    }
}

#[test]
fn a_syn_that_nobody_answers_goes_again_without_ecn() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    // A copy made by the network: no timer is that short.
    assert_eq!(u32::from(conn.guest_syn(linux_syn()).flags) & 0x1c0, 0x1c0);
    conn.wait_us(1_000_000);
    assert_eq!(ace(&conn.guest_syn(linux_syn())), 0);
    // The answer to the first one: the peer may send ECT, so its marks are counted, but a host that
    // has sent a SYN without ECN sends none (RFC 3168, 6.1.1).
    conn.peer_synack(linux_syn().ace(CODES[0]));
    conn.guest_acks(0);
    assert!(has_accecn(&conn) && is_not_ect(&conn.send(0, 1000)));
    conn.guest_gets(conn.ack(1000).len(1000).ce());
    assert_eq!(ace(&conn.guest_acks(1000)), 6);
}

#[test]
fn two_vcc_ends_keep_to_their_own_reports() {
    // The far end cannot know how long the peer's version has been able to read AccECN.
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn().asking_accecn().offer());
    let answer = conn.guest_synack(linux_syn().room(ROOM_BYTES));
    assert_eq!((ace(&answer), u32::from(answer.emit)), (0b001, sys::EMIT_HELLO));
    conn.peer_ack(0);
    assert!(conn.flow.has(sys::FLOW_FEEDBACK) && !has_accecn(&conn));

    let conn = Conn::to_vcc(Params::default(), 5);
    assert!(!has_accecn(&conn));
    // An acceptance together with AccECN comes from no version of ours.
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn().room(ROOM_BYTES));
    conn.peer_synack(linux_syn().ace(CODES[0]).accept());
    assert!(has_accecn(&conn) && !conn.flow.has(sys::FLOW_FEEDBACK));
}

#[test]
fn a_guest_with_accecn_is_left_alone_unless_the_policy_overrides_it() {
    for (params, shown, left_alone) in
        [(Params::default(), 0b010, true), (overriding(), 0b001, false)]
    {
        let mut conn = Conn::new(params, 5);
        let syn = conn.guest_syn(linux_syn().asking_accecn());
        assert_eq!(u32::from(syn.flags) & sys::TCP_ECN_BITS, sys::TCP_ECN_BITS);
        let answer = conn.peer_synack(linux_syn().ace(CODES[0]));
        assert_eq!(ace(&answer), shown);
        let copy = conn.peer_synack(linux_syn().ace(CODES[0]));
        assert_eq!(ace(&copy), shown);
        conn.guest_acks(0);
        assert_eq!(conn.flow.has(sys::FLOW_LEFT_ALONE), left_alone);
        assert_eq!(has_accecn(&conn), !left_alone);

        let mut conn = Conn::new(params, 5);
        let syn = conn.peer_syn(linux_syn().asking_accecn());
        // One that is overridden is asked for classic ECN, even if it accepts AccECN.
        assert_eq!(ace(&syn), if left_alone { 0b111 } else { 0b011 });
        let own = if left_alone { CODES[0] } else { 0b001 };
        let answer = conn.guest_synack(linux_syn().ace(own));
        assert_eq!(ace(&answer), u32::from(CODES[0]));
        conn.guest_gets(conn.ack(0).ace(CODES[0]));
        assert_eq!(conn.flow.has(sys::FLOW_LEFT_ALONE), left_alone);
    }
}

#[test]
fn a_classic_guest_that_is_overridden_speaks_accecn_to_its_peer() {
    let mut conn = Conn::new(overriding(), 5);
    let syn = conn.guest_syn(linux_syn().asking_ecn());
    assert_eq!(u32::from(syn.flags) & sys::TCP_ECN_BITS, sys::TCP_ECN_BITS);
    let answer = conn.peer_synack(linux_syn().ace(CODES[0]));
    assert_eq!(ace(&answer), 0b001, "the guest has what it asked for");
    assert_eq!(ace(&conn.guest_acks(0)), u32::from(CODES[0]));
    // A peer without AccECN answers as ever.
    let mut conn = Conn::new(overriding(), 5);
    conn.guest_syn(linux_syn().asking_ecn());
    assert_eq!(ace(&conn.peer_synack(linux_syn().ece())), 0b001);
    assert!(!has_accecn(&conn) && conn.flow.has(sys::FLOW_ECN_FABRIC));
}

#[test]
fn a_change_of_policy_leaves_what_was_agreed() {
    let mut conn = opened(overriding(), linux_syn().asking_ecn(), CODES[0]);
    conn.params = Params::default();
    let params = conn.params;
    conn.flow.judge_anew(&params);
    assert!(has_accecn(&conn) && !conn.flow.has(sys::FLOW_LEFT_ALONE));
    assert_eq!(ace(&conn.send(0, 1000)), 5);
    // Nobody treats it any more: the counter continues, ECT does not.
    conn.params = underlay("transparent");
    let params = conn.params;
    conn.flow.judge_anew(&params);
    let sent = conn.send(1000, 1000);
    assert!(ace(&sent) == 5 && is_not_ect(&sent));
}

#[test]
fn a_second_synack_does_not_reset_the_counters() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.guest_syn(linux_syn());
    conn.peer_synack(linux_syn().ace(CODES[0]));
    conn.guest_gets(seg().seq(conn.peer_seq(0)).ack(conn.seq(0)).win(PEER_WINDOW).len(1000).ce());
    conn.peer_synack(linux_syn().ace(CODES[0]));
    assert_eq!(ace(&conn.send(0, 1000)), 6);
}

#[test]
fn a_signed_syn_asks_for_nothing() {
    let mut conn = Conn::new(Params::default(), 5);
    let mut syn = linux_syn();
    syn.0.options |= sys::OPT_SIGNED as u16;
    assert_eq!(ace(&conn.guest_syn(syn)), 0);
    conn.peer_synack(linux_syn().ace(CODES[0]));
    assert!(!has_accecn(&conn));
}

#[test]
fn shadow_mode_asks_for_nothing() {
    let mut conn = Conn::new(params(|p| p.mode = vcc_engine::Mode::Shadow.number()), 5);
    let syn = linux_syn();
    let action = conn.guest_syn(syn);
    assert_eq!(ace(&action), 0);
}

#[test]
fn what_a_synack_has_said_stays() {
    // 3.1.5: neither end changes its mode.
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn().asking_accecn().ect0());
    assert_eq!(ace(&conn.guest_synack(linux_syn())), u32::from(CODES[2]));
    // The policy changes, a stray SYN comes, the peer's SYN comes again on another way.
    conn.params = classic();
    assert_eq!(ace(&conn.guest_synack(linux_syn())), u32::from(CODES[2]));
    conn.guest_gets(linux_syn().seq(PEER_ISS.wrapping_add(77777)));
    conn.peer_syn(linux_syn().asking_accecn());
    assert_eq!(ace(&conn.guest_synack(linux_syn())), u32::from(CODES[0]));
    conn.guest_gets(conn.ack(0).ace(CODES[0]));
    assert!(has_accecn(&conn) && is_ect0(&conn.send(0, 1000)));
}

#[test]
fn a_peer_that_gives_up_ecn_gets_no_ect() {
    // 3.1.5: a server that has received a SYN without ECN sends none, whatever it has agreed on.
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn().asking_accecn());
    conn.guest_synack(linux_syn());
    conn.peer_syn(linux_syn());
    assert_eq!(ace(&conn.guest_synack(linux_syn())), u32::from(CODES[0]));
    conn.guest_gets(conn.ack(0).ace(CODES[0]));
    let sent = conn.send(0, 1000);
    assert!(is_not_ect(&sent) && ace(&sent) == 5, "its own marks are counted");
}

#[test]
fn the_third_synack_gives_up() {
    // 3.2.3.2.2: the path may drop what it does not know.
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn().asking_accecn());
    conn.guest_synack(linux_syn());
    conn.wait_us(1_000_000);
    assert_eq!(ace(&conn.guest_synack(linux_syn())), u32::from(CODES[0]));
    conn.wait_us(2_000_000);
    assert_eq!(ace(&conn.guest_synack(linux_syn())), 0);
    // The first one got through after all.
    conn.guest_gets(conn.ack(0).ace(CODES[0]));
    assert!(has_accecn(&conn) && is_not_ect(&conn.send(0, 1000)));
}

#[test]
fn a_guest_that_gives_up_its_own_accecn_is_left_alone() {
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn().asking_accecn());
    conn.guest_synack(linux_syn().ace(CODES[0]));
    assert_eq!(ace(&conn.guest_synack(linux_syn())), 0);
    conn.guest_gets(conn.ack(0).ace(CODES[0]));
    assert!(conn.flow.has(sys::FLOW_LEFT_ALONE) && !has_accecn(&conn));
}

#[test]
fn an_overridden_guest_is_shown_no_odd_request() {
    for (bits, shown) in [(0b100, 0), (0b001, 0), (0b010, 0), (0b111, 0b011), (0b011, 0b011)] {
        let mut conn = Conn::new(overriding(), 5);
        assert_eq!(ace(&conn.peer_syn(linux_syn().ace(bits))), shown, "{bits:03b}");
        assert_eq!(ace(&conn.peer_syn(linux_syn().ace(bits))), shown, "{bits:03b}: again");
    }
}

#[test]
fn a_new_connection_on_a_live_one_agrees_anew() {
    let mut conn = from_accecn(Params::default());
    conn.send(0, 1000);
    let iss = PEER_ISS.wrapping_add(1 << 30);
    conn.guest_gets(linux_syn().asking_accecn().seq(iss).ect0());
    let answer = conn.guest_sends(linux_syn().seq(99).ack(iss.wrapping_add(1)));
    assert_eq!(ace(&answer), u32::from(CODES[2]));
    assert!(has_accecn(&conn));
}

#[test]
fn a_server_that_sends_first_sends_the_counter() {
    // RFC 7413: data before the last ACK of the handshake.
    let mut conn = Conn::new(Params::default(), 5);
    conn.peer_syn(linux_syn().asking_accecn());
    conn.guest_synack(linux_syn());
    let sent = conn.send(0, 1000);
    assert!(ace(&sent) == 5 && is_not_ect(&sent));
    // That ACK covers the data, and its field is no counter.
    conn.guest_gets(conn.ack(1000).ace(CODES[0]));
    assert!(has_accecn(&conn));
    conn.send(1000, 1000);
    conn.guest_gets(conn.ack(2000).ace(5));
    assert_eq!((conn.flow.marks, conn.flow.reductions), (0, 0));
}
