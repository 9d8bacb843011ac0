//! Policing (AC/DC, 3.3): a guest that keeps to its windows is never policed, and one that does not
//! gains nothing. laws.rs checks the former over generated traffic too.

use std::collections::VecDeque;

use crate::common::sim::Rng;
use crate::common::*;
use vcc_engine::{Action, GuestEcn, Mode, Params, sys};

fn policing(change: impl FnOnce(&mut sys::vcc_params)) -> Params {
    params(|p| {
        p.police = 1;
        change(p);
    })
}

/// A window of `segs` segments, unused.
fn open(mut params: Params, isn: u32, segs: u32) -> Conn {
    params.0.initial_window_segs = 1000;
    let mut conn = Conn::opened(params, isn, linux_syn(), linux_syn().win(3000));
    conn.params.0.window_cap_bytes = segs * conn.mss();
    conn.send_segs(0, 2);
    conn.peer_ack_segs(1);
    // The first window has at least two segments.
    conn.peer_ack_segs(2);
    conn.send_segs(2, 3);
    conn.peer_ack_segs(3);
    conn.send_segs(3, 4);
    let shown = conn.peer_ack_segs(4);
    assert_eq!(conn.shown_bytes(&shown), segs * conn.mss());
    // Start counting here.
    conn.guest_iss = conn.flow.snd_una.wrapping_sub(1 + 2 * conn.mss());
    conn
}

fn is_policed(action: &Action) -> bool {
    assert_eq!(is_dropped(action), action.police != 0);
    is_dropped(action)
}

#[test]
fn data_passes_up_to_the_right_edge() {
    for isn in ISNS {
        let mut conn = open(policing(|_| ()), isn, 4);
        let mss_bytes = conn.mss();
        for number in 2..6 {
            assert!(!is_policed(&conn.send(number * mss_bytes, mss_bytes)), "number {number}");
        }
        let before = conn.flow;
        assert!(is_policed(&conn.send(6 * mss_bytes, 1)), "a byte");
        assert!(is_policed(&conn.send(6 * mss_bytes, mss_bytes)));
        assert!(is_policed(&conn.guest_sends(conn.data(6 * mss_bytes, 9000).cut(1000))));
        assert_eq!((conn.flow.policed, conn.flow.drops), (3, before.drops + 3));
        assert_eq!(conn.flow.snd_nxt, before.snd_nxt, "not tracked");
        assert_eq!(conn.flow.mss_bytes, before.mss_bytes);
        assert_eq!(conn.flow.unreported_bytes, before.unreported_bytes);
        // The next ACK makes room.
        conn.peer_ack_segs(3);
        assert!(!is_policed(&conn.send(6 * mss_bytes, mss_bytes)));
        assert!(is_policed(&conn.send(7 * mss_bytes, mss_bytes)));
    }
}

#[test]
fn only_if_enabled() {
    let passes = |mut conn: Conn| {
        let mss_bytes = conn.mss();
        conn.send_segs(0, 2);
        conn.peer_ack_segs(2);
        (2..2000).all(|number| !is_policed(&conn.send(number * mss_bytes, mss_bytes)))
    };
    assert!(!passes(Conn::established(policing(|_| ()), 5)));
    assert!(passes(Conn::established(Params::default(), 5)));
    assert!(passes(Conn::established(policing(|p| p.mode = Mode::Shadow.number()), 5)));
    let mut transparent = underlay("transparent");
    transparent.0.police = 1;
    assert!(passes(Conn::established(transparent, 5)));
    let own_ecn = linux_syn().asking_ecn();
    assert!(passes(Conn::opened(policing(|_| ()), 5, own_ecn, linux_syn())), "left alone");
    let overrides = policing(|p| p.guest_ecn = GuestEcn::Override.number());
    assert!(!passes(Conn::opened(overrides, 5, own_ecn, linux_syn())));
}

#[test]
fn retransmissions_acks_and_fins_always_pass() {
    let mut conn = open(policing(|_| ()), 5, 4);
    let mss_bytes = conn.mss();
    conn.send_segs(2, 6);
    assert!(is_policed(&conn.send(6 * mss_bytes, mss_bytes)));
    for number in 0..6 {
        assert!(!is_policed(&conn.send(number * mss_bytes, mss_bytes)), "number {number}");
    }
    assert!(!is_policed(&conn.guest_sends(conn.data(0, 6 * mss_bytes).cut(mss_bytes))));
    conn.guest_gets(conn.ack(0).len(1000));
    assert!(!is_policed(&conn.guest_acks(1000)));
    assert!(!is_policed(&conn.guest_sends(conn.data(6 * mss_bytes, 0).fin())));
    assert!(!is_policed(&conn.guest_sends(conn.data(99 * mss_bytes, 0).rst())));
}

#[test]
fn a_probe_of_a_closed_window_passes() {
    // RFC 9293, 3.8.6.1: a byte, or up to a segment.
    for probe_bytes in [1, 1440] {
        let mut conn = open(policing(|_| ()), 5, 4);
        let mss_bytes = conn.mss();
        conn.send_segs(2, 6);
        conn.guest_gets(conn.ack(6 * mss_bytes).win(0));
        for _ in 0..5 {
            assert!(!is_policed(&conn.send(6 * mss_bytes, probe_bytes)), "also when repeated");
        }
        // One probe, not a stream of them.
        assert!(is_policed(&conn.send(6 * mss_bytes + probe_bytes, mss_bytes)));
        // The peer accepted it, and its window is still closed.
        conn.guest_gets(conn.ack(6 * mss_bytes + probe_bytes).win(0));
        assert!(!is_policed(&conn.send(6 * mss_bytes + probe_bytes, probe_bytes)));
    }
}

#[test]
fn the_syn_acks_window_counts_until_it_is_void() {
    // A rule that limits nothing has shown it.
    for isn in ISNS {
        let answer = linux_syn().win(60_000);
        let mut conn = Conn::opened(Params::default(), isn, linux_syn(), answer);
        conn.params.0.police = 1;
        let mss_bytes = conn.mss();
        assert!(!is_policed(&conn.send(0, mss_bytes)));
        // The first ACK shows a smaller window, but may be lost between port and guest.
        let shown = conn.peer_ack_segs(1);
        assert!(conn.shown_edge(mss_bytes, &shown) < 20_000);
        let most = 60_000 / mss_bytes;
        for number in 1..most {
            assert!(!is_policed(&conn.send(number * mss_bytes, mss_bytes)), "number {number}");
        }
        conn.send(most * mss_bytes, 60_000 % mss_bytes);
        assert!(is_policed(&conn.send(60_000, mss_bytes)));
        // Long after, half a sequence space away, the SYN-ACK's window is void.
        conn.params.0.window_cap_bytes = 10 * mss_bytes;
        let mut offset = 60_000;
        conn.peer_ack(offset);
        while offset < u32::MAX - 10_000_000 {
            let bytes = 10 * mss_bytes;
            conn.guest_sends(conn.data(offset, bytes).cut(mss_bytes));
            offset += bytes;
            conn.peer_ack(offset);
            let room = conn.flow.right_edge.wrapping_sub(conn.flow.snd_una);
            if offset % 1000 == 0 {
                let beyond = conn.data(offset + room, mss_bytes);
                assert!(is_policed(&conn.clone().guest_sends(beyond)), "at {offset}");
            }
        }
    }
}

/// Sends and acknowledges `bytes` from `offset` on. Returns the offset after them.
fn carry(conn: &mut Conn, mut offset: u32, bytes: u32) -> u32 {
    let end = offset + bytes;
    while offset < end {
        let flight_bytes = (end - offset).min(1 << 20);
        conn.guest_sends(conn.data(offset, flight_bytes).cut(conn.mss()));
        offset += flight_bytes;
        conn.peer_ack(offset);
    }
    offset
}

#[test]
fn edges_left_from_before_a_wrap_are_ignored() {
    for isn in ISNS {
        // The SYN-ACK's window, of a rule that did not police.
        let answer = linux_syn().win(60_000);
        let mut conn = Conn::opened(Params::default(), isn, linux_syn(), answer);
        let offset = carry(&mut conn, 0, 3 << 30);
        conn.params.0.police = 1;
        let mss_bytes = conn.mss();
        let edge = offset + conn.flow.right_edge.wrapping_sub(conn.flow.snd_una);
        assert!(is_policed(&conn.clone().guest_sends(conn.data(edge + 1, 0).fin())));
        assert!(is_policed(&conn.send(edge, mss_bytes)));

        // An overdraft, of a rule that policed once.
        let mut conn = open(policing(|_| ()), isn, 10);
        let mss_bytes = conn.mss();
        let offset = 2 * mss_bytes;
        let excess = conn.data(offset, 11 * mss_bytes).cut(mss_bytes);
        assert!(!is_policed(&conn.guest_sends(excess)));
        assert_eq!(u32::from(conn.flow.overdraft_bytes), mss_bytes);
        conn.params.0.police = 0;
        let offset = carry(&mut conn, offset + 11 * mss_bytes, 3 << 30);
        conn.params.0.police = 1;
        // It is withheld from one window.
        for (sent, offset) in [(9, offset), (10, offset + 9 * mss_bytes)] {
            for number in 0..sent {
                let action = conn.send(offset + number * mss_bytes, mss_bytes);
                assert!(!is_policed(&action), "number {number} of {sent}");
            }
            conn.peer_ack(offset + sent * mss_bytes);
        }
    }
}

#[test]
fn data_with_a_fin_is_policed_from_the_first_flight_on() {
    for isn in ISNS {
        let opened = || Conn::opened(policing(|_| ()), isn, linux_syn(), linux_syn());
        let mut conn = opened();
        let before = conn.flow;
        let mss_bytes = conn.mss();
        let beyond = conn.data(1, 60_000).cut(mss_bytes).fin();
        assert!(is_policed(&conn.guest_sends(beyond)));
        assert_eq!(conn.flow.snd_nxt, before.snd_nxt, "not tracked");
        // A FIN that overtakes data of its flight is one that the peer accepts.
        let mut conn = opened();
        assert!(!is_policed(&conn.guest_sends(conn.data(mss_bytes, mss_bytes).fin())));
        assert!(conn.flow.has(sys::FLOW_FIN_GUEST));
        conn.send(0, mss_bytes);
        conn.peer_ack(2 * mss_bytes + 1);
        assert_eq!(conn.flow.snd_una, conn.flow.snd_nxt);
    }
}

/// How many of a hundred full segments pass.
fn passed(conn: &mut Conn) -> u32 {
    let mss_bytes = conn.mss();
    (0..100).filter(|n| !is_policed(&conn.send(n * mss_bytes, mss_bytes))).count() as u32
}

#[test]
fn the_first_flight_is_the_initial_window() {
    for (initial_segs, segs) in [(1, 2), (2, 2), (10, 10), (20, 20), (1000, 44)] {
        let params = policing(|p| p.initial_window_segs = initial_segs);
        let mut conn = Conn::opened(params, 5, linux_syn(), linux_syn());
        assert_eq!(passed(&mut conn), segs, "the guest opens, {initial_segs}");
        // A passive opener was shown a window with the handshake's last ACK.
        let mut conn = Conn::accepted(params, 5, linux_syn(), linux_syn());
        assert!(passed(&mut conn) <= initial_segs.max(2) + 1, "the guest listens");
        // It may send with its SYN-ACK (RFC 7413), or right behind it.
        let mut conn = Conn::new(params, 5);
        let syn = conn.peer_syn(linux_syn());
        conn.guest_synack(linux_syn());
        let mss_bytes = conn.mss();
        let behind = (0..100).filter(|n| !is_policed(&conn.send(n * mss_bytes, mss_bytes))).count();
        let initial_bytes = initial_segs.max(2) * u32::from(conn.flow.mss_max_bytes);
        assert_eq!(u32::from(syn.window), initial_bytes.min(64_240), "what it was shown");
        assert_eq!(behind as u32, initial_bytes.min(65_535) / mss_bytes, "before the handshake");
    }
}

/// RFC 9293, figure 7: a peer that colludes opens, too.
#[test]
fn a_simultaneous_open_gives_no_more_than_the_initial_window() {
    for by_synack in [false, true] {
        let mut conn = Conn::new(policing(|_| ()), 5);
        conn.guest_syn(linux_syn());
        conn.peer_syn(linux_syn().win(u16::MAX));
        let most_bytes = 10 * u32::from(conn.flow.mss_max_bytes);
        let mut sent_bytes = 0;
        let mut flood = |conn: &mut Conn| {
            for _ in 0..100 {
                if !is_policed(&conn.send(sent_bytes, 1000)) {
                    sent_bytes += 1000;
                }
            }
        };
        flood(&mut conn);
        conn.guest_synack(linux_syn());
        flood(&mut conn);
        if by_synack {
            conn.peer_synack(linux_syn().win(u16::MAX));
        } else {
            conn.peer_ack(0);
        }
        flood(&mut conn);
        assert_eq!(u32::from(conn.flow.stage), sys::STAGE_ESTABLISHED);
        assert!(sent_bytes <= most_bytes + 1000, "{sent_bytes} of {most_bytes}");
    }
}

#[test]
fn a_guest_that_missed_an_ack_may_use_an_older_one() {
    // An old ACK's window is rounded up to the scale's unit.
    let mut conn = open(policing(|_| ()), 5, 4);
    let mss_bytes = conn.mss();
    conn.send(2 * mss_bytes, 1001);
    conn.send(2 * mss_bytes + 1001, 999);
    conn.peer_ack(2 * mss_bytes + 2000);
    let old = conn.peer_ack(2 * mss_bytes + 1001);
    let edge = conn.shown_edge(2 * mss_bytes + 1001, &old);
    let mut offset = 2 * mss_bytes + 2000;
    while offset < edge {
        let bytes = mss_bytes.min(edge - offset);
        assert!(!is_policed(&conn.send(offset, bytes)));
        offset += bytes;
    }
    conn.peer_ack(offset - 100);
    assert!(!is_policed(&conn.send(offset, mss_bytes)), "no overdraft");
}

#[test]
fn a_super_segment_that_starts_inside_passes_whole_once() {
    let mut conn = open(policing(|_| ()), 5, 10);
    let mss_bytes = conn.mss();
    let big = |conn: &Conn, from: u32, segs: u32| {
        conn.data(from * mss_bytes, segs * mss_bytes).cut(mss_bytes)
    };
    conn.send_segs(2, 9); // 7 of 10
    assert!(!is_policed(&conn.guest_sends(big(&conn, 9, 6))), "3 inside, 3 beyond");
    assert!(is_policed(&conn.guest_sends(big(&conn, 15, 6))));
    // While the overdraft is owed, the edge is that much lower.
    conn.peer_ack_segs(8);
    assert!(is_policed(&conn.send(15 * mss_bytes, mss_bytes)), "15 of 18 - 3");
    conn.peer_ack_segs(9);
    assert!(!is_policed(&conn.send(15 * mss_bytes, mss_bytes)), "16 of 19 - 3");
    assert!(is_policed(&conn.guest_sends(big(&conn, 16, 2))));
}

#[test]
fn an_overdraft_is_limited() {
    // At most a window can be withheld within a round trip.
    let mut conn = open(policing(|_| ()), 5, 10);
    let mss_bytes = conn.mss();
    let big = conn.data(2 * mss_bytes, 44 * mss_bytes).cut(mss_bytes);
    assert!(is_policed(&conn.guest_sends(big)));
    // At most what the state can hold.
    let mut conn = open(policing(|_| ()), 5, 100);
    conn.send_segs(2, 60);
    let big = conn.data(60 * mss_bytes, 90 * mss_bytes).cut(mss_bytes);
    assert!(is_policed(&conn.guest_sends(big)), "{} bytes beyond", 48 * mss_bytes);
}

/// How the path returns ACKs.
#[derive(Clone, Copy, Debug)]
enum Acks {
    EachSegment,
    /// One ACK for all arrivals of a round trip.
    Batched,
    Random,
}

/// A guest that ignores its window of `window_segs` and sends super-segments of up to `most_segs`
/// at every opportunity. Returns the bytes that passed in `rounds` round trips.
fn greedy(seed: u64, window_segs: u32, most_segs: u32, acks: Acks, rounds: u64) -> u64 {
    const RTT_US: u64 = 10_000;
    let mut rng = Rng::new(seed);
    let mut conn = open(policing(|_| ()), rng.pick(&ISNS), window_segs);
    let mss_bytes = conn.mss();
    let mut next = conn.flow.snd_nxt.wrapping_sub(conn.seq(0));
    let start = next;
    let mut under_way: VecDeque<(u64, u32)> = VecDeque::new();
    let start_us = conn.now_us;
    let mut stalled = 0;
    while conn.now_us < start_us + rounds * RTT_US {
        // It sends until it is stopped, with every size.
        let mut refusals = 0;
        while refusals < 3 {
            let segs = rng.range(1, u64::from(most_segs) + 1) as u32;
            let mut segment = conn.data(next, segs * mss_bytes);
            if segs > 1 {
                segment = segment.cut(mss_bytes);
            }
            if is_policed(&conn.guest_sends(segment)) {
                refusals += 1;
                continue;
            }
            next += segs * mss_bytes;
            under_way.push_back((conn.now_us + RTT_US, next));
        }
        let Some(&(at_us, _)) = under_way.front() else {
            stalled += 1;
            conn.wait_us(RTT_US);
            continue;
        };
        conn.now_us = conn.now_us.max(at_us);
        let mut acked = under_way.pop_front().unwrap().1;
        let batch_us = match acks {
            Acks::EachSegment => 0,
            Acks::Batched => RTT_US,
            Acks::Random => rng.pick(&[0, 0, 1000, RTT_US]),
        };
        while under_way.front().is_some_and(|&(at_us, _)| at_us <= conn.now_us + batch_us) {
            acked = under_way.pop_front().unwrap().1;
        }
        if matches!(acks, Acks::EachSegment) {
            // Spread over the acknowledged bytes.
            let mut offset = conn.flow.snd_una.wrapping_sub(conn.seq(0));
            while offset < acked {
                offset += mss_bytes;
                conn.peer_ack(offset.min(acked));
                conn.wait_us(1);
            }
        } else {
            conn.peer_ack(acked);
        }
    }
    assert!(stalled < rounds, "data within the window passes");
    u64::from(next - start)
}

#[test]
fn ignoring_the_window_gains_nothing() {
    for acks in [Acks::EachSegment, Acks::Batched, Acks::Random] {
        for window_segs in [1, 2, 3, 10, 30, 100] {
            for most_segs in [1, 2, 10, 44] {
                for seed in 0..5 {
                    const ROUNDS: u64 = 400;
                    let passed = greedy(seed, window_segs, most_segs, acks, ROUNDS);
                    // The first window, and one super-segment.
                    let fair = u64::from(window_segs) * 1440 * (ROUNDS + 2) + 65_535;
                    assert!(
                        passed <= fair,
                        "{acks:?}, window {window_segs}, super-segments of {most_segs}: \
                         {:.3} of a fair share",
                        passed as f64 / fair as f64
                    );
                }
            }
        }
    }
}

/// Savage et al. (1999), 2.3: who acknowledges what is still on its way is sent more.
#[test]
fn what_has_not_come_is_not_acknowledged() {
    for isn in ISNS {
        let mut conn = Conn::established(policing(|_| ()), isn);
        let arrives =
            |conn: &mut Conn, from| conn.guest_gets(conn.ack(0).seq(conn.peer_seq(from)).len(1000));
        assert!(!is_policed(&conn.guest_acks(0)));
        arrives(&mut conn, 0);
        assert!(!is_policed(&conn.guest_acks(1000)));
        let before = conn.flow;
        assert!(is_policed(&conn.guest_acks(1001)));
        let ahead = conn.data(0, 100).ack(conn.peer_seq(3000));
        assert!(is_policed(&conn.guest_sends(ahead)), "with data");
        assert_eq!((conn.flow.rcv_wup, conn.flow.rcv_edge), (before.rcv_wup, before.rcv_edge));
        assert_eq!((conn.flow.snd_nxt, conn.flow.policed), (before.snd_nxt, 2));
        // What is missing may come by a way of its own; what lies beyond has been seen.
        arrives(&mut conn, 2000);
        assert!(!is_policed(&conn.guest_acks(1000)));
        assert!(!is_policed(&conn.guest_acks(3000)));
        conn.guest_gets(conn.ack(0).seq(conn.peer_seq(3000)).fin());
        assert!(!is_policed(&conn.guest_acks(3001)), "a FIN counts");
        assert!(is_policed(&conn.guest_acks(3002)));
    }
}

/// What passed untracked while nothing was policed is acknowledged after that as well: by then, or
/// once the peer has sent it again.
#[test]
fn an_acknowledgement_from_before_policing_is_believed() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.guest_acks(0);
    assert!(!is_policed(&conn.guest_acks(5000)));
    conn.params.0.police = 1;
    assert!(!is_policed(&conn.guest_acks(5000)));
    assert!(is_policed(&conn.guest_acks(7000)));
    conn.guest_gets(conn.ack(0).seq(conn.peer_seq(5000)).len(2000));
    assert!(!is_policed(&conn.guest_acks(7000)));
}

/// A server that takes the data of a SYN (RFC 7413), which the port does not track.
#[test]
fn the_first_acknowledgement_is_believed() {
    let mut conn = Conn::new(policing(|_| ()), 5);
    conn.peer_syn(linux_syn().len(900));
    conn.guest_sends(linux_syn().seq(conn.guest_iss).ack(conn.peer_seq(900)));
    conn.guest_gets(conn.ack(0).seq(conn.peer_seq(900)));
    assert!(!is_policed(&conn.guest_acks(900)));
    assert!(is_policed(&conn.guest_acks(901)));
}

#[test]
fn the_count_saturates() {
    let mut conn = open(policing(|_| ()), 5, 2);
    conn.flow.0.policed = u16::MAX - 1;
    let offset = 50 * conn.mss();
    for _ in 0..3 {
        assert!(is_policed(&conn.send(offset, 100)));
    }
    assert_eq!(conn.flow.policed, u16::MAX);
}

/// A guest sends no data before it has been answered. A server may send before its handshake
/// completes (RFC 7413), within the unscaled window of the SYN, which is the initial window.
#[test]
fn data_before_the_handshake_completes() {
    for isn in ISNS {
        let mut client = Conn::new(policing(|_| ()), isn);
        client.guest_syn(linux_syn());
        assert!(is_policed(&client.send(0, 1)));
        assert!(!is_policed(&client.guest_acks(0)));
        assert_eq!((client.flow.policed, client.flow.drops), (1, 1));

        let mut server = Conn::new(policing(|_| ()), isn);
        server.peer_syn(linux_syn());
        assert!(is_policed(&server.send(0, 1)), "not before its SYN-ACK");
        server.guest_synack(linux_syn());
        let most = 10 * u32::from(server.flow.mss_max_bytes);
        for offset in [0, 1448, most - 1448, 0] {
            assert!(!is_policed(&server.send(offset, 1448)), "at {offset}");
        }
        assert!(is_policed(&server.send(most - 1447, 1448)));
        assert!(is_policed(&server.send(0_u32.wrapping_sub(2000), 1448)), "never sent");
        server.peer_ack(0);
        assert_eq!(u32::from(server.flow.stage), sys::STAGE_ESTABLISHED);
    }
    let mut unpoliced = Conn::new(params(|_| ()), 0);
    unpoliced.guest_syn(linux_syn());
    assert!(!is_policed(&unpoliced.send(0, 1)));
}
