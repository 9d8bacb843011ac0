//! A connection that comes with its guest from another host.

use crate::common::*;
use vcc_engine::sys;

/// The connection on a host whose clock is another one. `now_us` of the host before stays behind.
fn moved(conn: &Conn) -> Conn {
    let now_us = conn.now_us / 3 + 77_777_777;
    let flow = conn.flow.described().arrive(&conn.params, now_us).expect("a connection");
    Conn { flow, now_us, ..conn.clone() }
}

fn dctcp() -> vcc_engine::Params {
    underlay("dctcp")
}

/// In the middle of a transfer: segments before `segs` are acknowledged, ten are in flight.
fn in_flight(mut conn: Conn, segs: u32) -> Conn {
    for sent in 0..segs + 10 {
        conn.send_segs(sent, sent + 1);
        conn.wait_us(50);
        if sent >= 10 {
            conn.peer_ack_segs(sent - 9);
        }
    }
    conn
}

#[test]
fn it_goes_on_with_its_window_and_its_scale() {
    let mut there = in_flight(Conn::established(params(|_| ()), 5), 40);
    let mut here = moved(&there);
    assert_eq!(here.cwnd(), there.cwnd());
    assert_ne!(here.flow.wscale_shown, here.flow.wscale_peer, "else there is nothing to translate");
    // The first ACK may repeat one that the guest has had, so it grants no growth.
    here.wait_us(50);
    let edge = here.flow.right_edge;
    let ack = here.peer_ack_segs(41);
    assert_eq!(ack.window, there.peer_ack_segs(41).window);
    assert!(here.shown_edge(41 * here.mss(), &ack) >= edge.wrapping_sub(here.seq(0)));
    here.send_segs(50, 51);
    here.wait_us(100);
    let before = here.cwnd();
    here.peer_ack_segs(50);
    assert!(here.cwnd() >= before);
    assert_eq!((here.flow.lags, here.flow.retransmissions), (0, 0));
    assert!(here.flow.srtt_us8 > 0);
}

#[test]
fn what_was_sent_since_it_was_described_is_no_news() {
    // Of segments of 1448 bytes: also gigabytes, around which sequence numbers wrap.
    for segs_elsewhere in [100, 50_000, 800_000, 2_000_000, 2_300_000, 2_900_000] {
        let there = in_flight(Conn::established(dctcp(), 5), 40);
        let mut here = moved(&there);
        let cwnd = here.cwnd();
        // The guest shows first where it is.
        here.send_segs(segs_elsewhere, segs_elsewhere + 1);
        let ack = here.peer_ack_segs(segs_elsewhere - 4);
        assert_eq!(here.cwnd(), cwnd, "{segs_elsewhere}");
        assert!(ack.window > 0 && here.shown_bytes(&ack) <= (cwnd + 1) * here.mss());
        // An ACK that covers the segment sent here is evaluated.
        here.wait_us(300);
        here.peer_ack_segs(segs_elsewhere + 1);
        assert_eq!((here.flow.snd_una, here.flow.lags), (here.flow.snd_nxt, 0));
        assert!(here.flow.srtt_us8 != there.flow.srtt_us8, "and is timed");
    }
}

/// One that cheats could move its edge before the peer's ACK of each flight.
#[test]
fn a_policed_guest_says_once_where_it_is() {
    for police in [0, 1] {
        let there = in_flight(Conn::established(params(|p| p.police = police), 5), 40);
        let mut here = moved(&there);
        here.guest_sends(here.data(100 * here.mss(), 0));
        let edge = here.flow.right_edge;
        assert_eq!(here.flow.snd_nxt, here.seq(100 * here.mss()), "it is believed");
        let mut is_dropped = |segs| {
            let mss = here.mss();
            here.guest_sends(here.data(segs * mss, mss)).police != 0
        };
        assert_eq!([5000, 4000].map(&mut is_dropped), [police == 1; 2]);
        assert_eq!(here.flow.right_edge != edge, police == 0);
    }
}

#[test]
fn a_guest_that_only_receives_says_what_it_has() {
    let mut there = Conn::established(params(|_| ()), 5);
    for segs in 0..20 {
        there.guest_gets(there.ack(0).seq(there.peer_seq(segs * 1448)).len(1448));
        there.guest_acks((segs + 1) * 1448);
    }
    let mut here = moved(&there);
    let far = 3_000_000_u32;
    let data = |conn: &Conn, offset: u32| conn.ack(0).seq(conn.peer_seq(offset)).len(1448);
    // Beyond the edge that the port knows: the guest takes it nevertheless.
    let first = here.guest_gets(data(&here, far));
    assert_eq!(u32::from(first.verdict), sys::VCC_PASS);
    here.guest_acks(far + 1448);
    assert_eq!(here.flow.rcv_nxt, here.peer_seq(far + 1448));
    here.guest_gets(data(&here, far + 1448));
    assert_eq!((here.flow.rcv_nxt, here.flow.lags), (here.peer_seq(far + 2 * 1448), 0));
}

#[test]
fn until_the_guest_is_heard_it_keeps_the_window_that_it_was_shown() {
    let there = in_flight(Conn::established(params(|_| ()), 5), 40);
    let mut here = moved(&there);
    let ahead = here.guest_gets(here.ack(5_000 * here.mss()));
    assert_eq!(ahead.window, there.flow.window_shown);
    assert_eq!(here.flow.snd_una, there.flow.snd_una);
}

#[test]
fn the_first_report_is_compared_with_none_before_it() {
    let there = in_flight(Conn::to_vcc(dctcp(), 5), 40);
    let mut here = moved(&there);
    let mss = here.mss();
    here.send_segs(5_000, 5_010);
    let report = |conn: &Conn, segs: u32, ect0: u32, ce: u32| conn.ack(segs * mss).pack(ect0, ce);
    let cwnd = here.cwnd();
    // Marks that the host before has answered.
    here.guest_gets(report(&here, 5_001, 7_654_321, 123_456));
    here.wait_us(50);
    here.guest_gets(report(&here, 5_002, 7_654_321 + mss, 123_456));
    assert_eq!((here.flow.forged, here.flow.reductions, here.cwnd() >= cwnd), (0, 0, true));
    assert!(!here.flow.has(sys::FLOW_FEEDBACK_LOST) && !here.flow.has(sys::FLOW_FEEDBACK_FALSE));
    here.guest_gets(report(&here, 5_003, 7_654_321 + mss, 123_456 + mss));
    assert_eq!((here.flow.forged, here.flow.reductions), (0, 1), "the next one counts");
}

/// To a peer with AccECN; five of ten segments are acknowledged.
fn accurate() -> Conn {
    let mut conn = Conn::to_accecn(dctcp(), 5);
    conn.send_segs(0, 10);
    conn.guest_gets(conn.ack(5 * conn.mss()).ace(5));
    conn
}

#[test]
fn the_first_counter_of_accecn_is_compared_with_none_before_it() {
    let mut here = moved(&accurate());
    let mss = here.mss();
    here.send_segs(300, 310);
    here.guest_gets(here.ack(301 * mss).ace(3).accecn_option(0, 99 * mss));
    assert_eq!((here.flow.forged, here.flow.reductions), (0, 0));
    here.guest_gets(here.ack(303 * mss).ace(4).accecn_option(0, 100 * mss));
    assert_eq!((here.flow.forged, here.flow.reductions), (0, 1), "the next one counts");
}

#[test]
fn what_no_connection_is_like_does_not_arrive() {
    let there = in_flight(Conn::established(params(|_| ()), 5), 40);
    let described = |change: fn(&mut sys::vcc_flow)| {
        let mut flow = there.flow;
        change(&mut flow.0);
        flow.arrive(&there.params, 1_000_000).is_some()
    };
    assert!(described(|_| ()));
    assert!(!described(|flow| flow.mss_bytes = 0));
    assert!(!described(|flow| flow.snd_una = flow.snd_nxt.wrapping_add(1)));
    assert!(!described(|flow| flow.underlay = 99));
    assert!(!described(|flow| flow.stage = sys::STAGE_SYN_SENT as u8));
    assert!(!described(|flow| flow.wscale_shown = 15));
    assert!(!described(|flow| flow.wscale_peer = 15));
    assert!(!described(|flow| flow.wscale_guest = 15));
    assert!(!described(|flow| flow.mss_max_bytes = 0));
    assert!(!described(|flow| flow.accecn = 0xff));
    assert!(!described(|flow| flow.flags &= !sys::FLOW_SYN_SEEN_GUEST));
}

#[test]
fn an_old_ack_first_does_not_make_news_of_the_next() {
    let there = in_flight(Conn::established(params(|_| ()), 5), 40);
    let mut here = moved(&there);
    here.send_segs(5_000, 5_001);
    let cwnd = here.cwnd();
    here.peer_ack_segs(40);
    here.peer_ack_segs(5_000);
    assert_eq!(here.cwnd(), cwnd);
}

#[test]
fn a_guest_that_is_first_heard_repeating_itself_is_caught_up_with() {
    let mut there = Conn::established(dctcp(), 5);
    there.send(0, 100);
    there.peer_ack(100);
    let mut here = moved(&there);
    // Elsewhere it sent two segments more, of which the first was lost. The peer answers both.
    here.send(100, 1448);
    let mut echoes = 0;
    for number in 0..100 {
        let data = here.ack(2000).seq(here.peer_seq(number * 1448)).len(1448).ce();
        here.guest_gets(data);
        let ack = seg().seq(here.seq(2000)).ack(here.peer_seq((number + 1) * 1448)).win(500);
        echoes += u32::from(has_flags(&here.guest_sends(ack), sys::TCP_ECE));
    }
    assert!(echoes >= 99, "{echoes} marks of 100 are echoed");
}

#[test]
fn an_ack_before_the_guest_tells_of_no_marks() {
    let mut here = moved(&accurate());
    let mss = here.mss();
    here.guest_gets(here.ack(7 * mss).ace(5));
    here.guest_gets(here.ack(8 * mss).ace(5));
    assert_eq!((here.flow.reductions, here.flow.marks), (0, 0));
}

#[test]
fn a_window_is_reduced_once_wherever_its_echo_arrives() {
    for name in ["reno-ecn", "dctcp"] {
        let mut there = in_flight(Conn::established(underlay(name), 5), 40);
        let mss = there.mss();
        there.guest_gets(there.ack(41 * mss).ece());
        let reduced = there.cwnd().min(there.flow.cc.ssthresh_segs);
        let mut here = moved(&there);
        for segs in 42..=49 {
            here.guest_gets(here.ack(segs * mss).ece());
        }
        assert_eq!((here.flow.reductions, here.cwnd()), (0, reduced), "law 6: {name}");
    }
}

#[test]
fn a_recovery_that_was_under_way_has_reduced_the_window() {
    let mut there = in_flight(Conn::established(params(|_| ()), 5).without_sack(), 40);
    for _ in 0..4 {
        there.peer_ack_segs(40);
    }
    assert_eq!(u32::from(there.flow.ca_state), sys::CA_RECOVERY);
    assert_eq!(moved(&there).cwnd(), there.cwnd().min(there.flow.cc.ssthresh_segs));
    there.flow.0.cc.cwnd_segs = 22;
    assert_eq!(moved(&there).cwnd(), there.flow.cc.ssthresh_segs);
}

#[test]
fn duplicates_keep_the_window_that_was_shown_elsewhere() {
    let mut there = in_flight(Conn::established(params(|_| ()), 5).without_sack(), 40);
    there.flow.0.cc.cwnd_segs = 12; // it has grown since it was shown
    let mut here = moved(&there);
    for number in 1..=4 {
        here.wait_us(10);
        assert_eq!(here.peer_ack_segs(40).window, there.flow.window_shown, "law 4");
        assert_eq!(here.flow.dupacks, number);
    }
}

#[test]
fn a_policed_guest_has_no_more_than_its_window() {
    for iss in [5, 0x9000_0000] {
        let there = in_flight(Conn::established(params(|p| p.police = 1), iss), 40);
        let mut here = moved(&there);
        let passes = |conn: &mut Conn| {
            let mss = conn.mss();
            (50..2_000).filter(|number| !is_dropped(&conn.send(number * mss, mss))).count()
        };
        here.send_segs(49, 50);
        here.peer_ack_segs(45);
        let mut stays = there.clone();
        stays.peer_ack_segs(45);
        assert_eq!(passes(&mut here), passes(&mut stays), "{iss:#x}");
    }
}

#[test]
fn a_policed_guest_may_acknowledge_what_passed_elsewhere() {
    let mut there = Conn::established(params(|p| p.police = 1), 5);
    for number in 0..10 {
        there.guest_gets(there.ack(0).seq(there.peer_seq(number * 1448)).len(1448));
    }
    let mut here = moved(&there);
    for segs in [2, 4, 6, 8, 10] {
        assert!(!is_dropped(&here.guest_acks(segs * 1448)), "{segs}");
    }
}

#[test]
fn a_guest_that_is_first_heard_by_a_rst_has_ended() {
    let there = in_flight(Conn::established(params(|_| ()), 5), 40);
    let mut here = moved(&there);
    here.guest_sends(seg().rst().seq(here.seq(5_000_000)).ack(here.peer_seq(0)));
    assert_eq!(u32::from(here.flow.stage), sys::STAGE_CLOSED);
}

#[test]
fn one_that_is_never_heard_is_forgotten_sooner() {
    let there = Conn::established(params(|_| ()), 5);
    let half_closed_ms = there.params.0.idle_half_closed_ms;
    assert!(there.flow.look_within_ms(&there.params) > half_closed_ms);
    assert_eq!(moved(&there).flow.look_within_ms(&there.params), half_closed_ms);
}

#[test]
fn a_guest_that_comes_back_is_caught_up_with() {
    let mut here = in_flight(Conn::established(dctcp(), 5), 40);
    let mut later = here.flow;
    later.0.snd_una = here.seq(5_000 * here.mss());
    let now_ms = |conn: &Conn| (conn.now_us / 1000) as u32;
    let before = here.flow;
    assert!(!here.flow.come_back(&later, now_ms(&here)), "it continues here");
    here.wait_us(5_000_000);
    assert!(!here.flow.come_back(&before, now_ms(&here)), "older than what is known");
    assert_eq!(here.flow.lags, 0);

    assert!(here.flow.come_back(&later, now_ms(&here)));
    let cwnd = here.cwnd();
    assert_eq!((here.flow.snd_una, here.flow.wscale_shown), (before.snd_una, before.wscale_shown));
    here.send_segs(5_010, 5_011);
    here.peer_ack_segs(5_005);
    assert!(here.cwnd() <= cwnd, "what was sent elsewhere is no news");
    here.wait_us(100);
    here.peer_ack_segs(5_011);
    assert_eq!((here.flow.snd_una, here.flow.lags), (here.seq(5_011 * here.mss()), 0));
}

#[test]
fn one_that_has_not_left_goes_on_after_a_description_that_is_ahead() {
    let mut here = in_flight(Conn::established(dctcp(), 5), 40);
    let mut wrong = here.flow;
    wrong.0.snd_una = here.seq(5_000 * here.mss());
    here.wait_us(60_000_000);
    assert!(here.flow.come_back(&wrong, (here.now_us / 1000) as u32));
    here.send_segs(50, 51);
    here.peer_ack_segs(51);
    assert_eq!((here.flow.snd_una, here.flow.lags), (here.seq(51 * here.mss()), 0));
}
