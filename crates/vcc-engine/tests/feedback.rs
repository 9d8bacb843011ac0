//! The sender half reading reports: what is lost, repeated or overtaken does no harm, what cannot
//! be is not believed, and who falls silent is taken for a classic receiver, or for none.

use crate::common::sim::Rng;
use crate::common::*;
use vcc_engine::{Action, Params, sys};

const COUNTER_MASK: u32 = 0xff_ffff;

fn state(conn: &Conn) -> u32 {
    conn.flow.flags & (sys::FLOW_FEEDBACK_HEARD | sys::FLOW_FEEDBACK_LOST | sys::FLOW_UNHEARD)
}

fn is_consumed(action: &Action) -> bool {
    u32::from(action.verdict) == sys::VCC_CONSUME
}

/// A far end that counts what it gets, and reports.
#[derive(Default)]
struct Far {
    ect0_bytes: u32,
    ce_bytes: u32,
}

impl Far {
    fn new() -> Self {
        Far { ect0_bytes: 1, ce_bytes: 0 }
    }

    fn gets(&mut self, unmarked_bytes: u32, marked_bytes: u32) -> &Self {
        self.ect0_bytes = (self.ect0_bytes + unmarked_bytes) & COUNTER_MASK;
        self.ce_bytes = (self.ce_bytes + marked_bytes) & COUNTER_MASK;
        self
    }

    fn pack(&self, ack: Seg) -> Seg {
        ack.pack(self.ect0_bytes, self.ce_bytes)
    }

    /// Beside a segment that acknowledges all before `offset`.
    fn fack(&self, conn: &Conn, offset: u32) -> Seg {
        conn.ack(offset.wrapping_sub(1)).fack(self.ect0_bytes, self.ce_bytes)
    }
}

/// A flow of `underlay` in congestion avoidance with ten segments in flight.
fn flying(name: &str, isn: u32) -> (Conn, u32) {
    let mut conn = Conn::to_vcc(underlay(name), isn);
    conn.flow.0.cc.ssthresh_segs = 2;
    conn.send_segs(0, 10);
    let mss_bytes = conn.mss();
    (conn, mss_bytes)
}

#[test]
fn a_mark_in_a_report_reduces() {
    for isn in ISNS {
        for name in ["reno-ecn", "dctcp"] {
            let (mut conn, mss_bytes) = flying(name, isn);
            let mut far = Far::new();
            conn.guest_gets(far.gets(2 * mss_bytes, 0).pack(conn.ack(2 * mss_bytes)));
            assert_eq!((conn.flow.reductions, conn.flow.marks), (0, 0), "{name}");
            conn.guest_gets(far.gets(mss_bytes, mss_bytes).pack(conn.ack(4 * mss_bytes)));
            assert_eq!((conn.flow.reductions, conn.flow.marks), (1, 1), "{name}");
            assert_eq!(conn.flow.unreported_bytes, 6 * mss_bytes);
            let next = conn.send(10 * mss_bytes, mss_bytes);
            assert!(has_flags(&next, sys::TCP_CWR), "a classic echo beside it must end");
            conn.guest_gets(far.gets(0, mss_bytes).pack(conn.ack(5 * mss_bytes)));
            assert_eq!(conn.flow.reductions, 1, "law 6: once a window");
        }
    }
}

#[test]
fn until_the_first_report_ece_is_all_there_is() {
    for name in ["reno-ecn", "dctcp"] {
        let (mut conn, mss_bytes) = flying(name, 5);
        conn.guest_gets(conn.ack(mss_bytes).ece());
        assert_eq!((conn.flow.reductions, conn.flow.cc.ssthresh_segs), (1, 5), "{name}");
    }
}

#[test]
fn a_fack_is_consumed_and_read() {
    for isn in ISNS {
        let (mut conn, mss_bytes) = flying("dctcp", isn);
        let mut far = Far::new();
        let fack = far.gets(0, mss_bytes).fack(&conn, mss_bytes);
        let before = conn.flow;
        let action = conn.guest_gets(fack);
        assert!(is_consumed(&action) && action.forged == 0);
        assert_eq!((conn.flow.reductions, conn.flow.marks), (1, 1));
        assert_eq!((conn.flow.snd_una, conn.flow.dupacks), (before.snd_una, before.dupacks));
        assert_eq!(conn.flow.right_edge, before.right_edge, "it shows the guest nothing");
        // Its like again, and after what it went beside.
        conn.guest_gets(conn.ack(mss_bytes).len(100));
        assert!(is_consumed(&conn.guest_gets(fack)));
        assert_eq!((conn.flow.reductions, conn.flow.marks), (1, 1));
    }
}

#[test]
fn a_fack_that_was_not_agreed_passes_as_an_old_ack() {
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 4);
    conn.peer_ack_segs(2);
    let action = conn.guest_gets(conn.ack(2 * conn.mss() - 1).fack(1, 5000));
    assert_eq!(u32::from(action.verdict), sys::VCC_PASS);
    assert_eq!((action.strip, action.forged), (1, 1));
    assert_eq!((conn.flow.marks, conn.flow.dupacks), (0, 0));
}

#[test]
fn a_segment_with_payload_is_no_fack() {
    let (mut conn, mss_bytes) = flying("dctcp", 5);
    let data = conn.guest_gets(conn.ack(mss_bytes).len(100).fack(1, mss_bytes));
    assert_eq!((u32::from(data.verdict), data.strip), (sys::VCC_PASS, 1));
}

#[test]
fn a_fack_that_ends_a_reduction_can_begin_the_next() {
    // It is told once: by what the report came with, or not at all.
    let (mut conn, mss_bytes) = flying("dctcp", 5);
    let mut far = Far::new();
    conn.guest_gets(far.gets(0, mss_bytes).pack(conn.ack(mss_bytes)));
    assert_eq!(conn.flow.reductions, 1);
    conn.send_segs(10, 15);
    conn.guest_gets(far.gets(9 * mss_bytes, 0).pack(conn.ack(10 * mss_bytes)));
    // Beyond `recover` now, and marked again.
    conn.guest_gets(far.gets(0, 2 * mss_bytes).fack(&conn, 12 * mss_bytes));
    conn.guest_gets(conn.ack(12 * mss_bytes).len(100));
    assert_eq!(conn.flow.reductions, 2);
}

#[test]
fn a_fack_may_overtake_the_report_before_it() {
    // The ACK beside it says one byte more than the FACK does; so may one sent before.
    for isn in ISNS {
        let (mut conn, mss_bytes) = flying("dctcp", isn);
        let mut far = Far::new();
        let pack = far.gets(mss_bytes, 0).pack(conn.ack(2 * mss_bytes));
        let fack = far.gets(mss_bytes, 0).fack(&conn, 2 * mss_bytes);
        conn.guest_gets(fack);
        let action = conn.guest_gets(pack);
        assert_eq!((action.forged, conn.flow.forged), (0, 0));
        assert_eq!(state(&conn), sys::FLOW_FEEDBACK_HEARD);
        assert_eq!(conn.flow.unreported_bytes, 8 * mss_bytes);
    }
}

/// Guest and far end as one property: whatever happens to reports, what was heard in the end is
/// what was counted, and nobody is called a forger.
#[test]
fn lost_repeated_and_overtaken_reports_do_no_harm() {
    for seed in 0..3000 {
        let mut rng = Rng::new(seed);
        let isn = rng.pick(&ISNS);
        let mut conn = Conn::to_vcc(underlay(rng.pick(&["dctcp", "reno-ecn"])), isn);
        let mut far = Far::new();
        far.ect0_bytes = rng.pick(&[1, COUNTER_MASK - 20_000]);
        conn.flow.0.heard.ect0_bytes = far.ect0_bytes;
        let mss_bytes = conn.mss();
        let (mut sent, mut arrived) = (0, 0);
        let mut under_way: Vec<Seg> = Vec::new();
        let mut marked_bytes = 0;
        for _ in 0..rng.range(10, 200) {
            for _ in 0..rng.range(0, 4) {
                conn.send(sent, mss_bytes);
                sent += mss_bytes;
            }
            // Some arrive, and are acknowledged by a PACK or by data with a FACK beside it.
            let segs = rng.range(0, u64::from((sent - arrived) / mss_bytes) + 1) as u32;
            for _ in 0..segs {
                let marked = rng.chance(300);
                far.gets(u32::from(!marked) * mss_bytes, u32::from(marked) * mss_bytes);
                marked_bytes += u32::from(marked) * mss_bytes;
            }
            arrived += segs * mss_bytes;
            if segs > 0 && rng.chance(500) {
                under_way.push(far.pack(conn.ack(arrived)));
            } else if segs > 0 {
                let beside = conn.ack(arrived).len(10);
                let pair = [far.fack(&conn, arrived), beside];
                under_way.extend(if rng.chance(500) { pair } else { [pair[1], pair[0]] });
            }
            // The path: in order, but for what it loses, repeats, or lets overtake.
            while under_way.len() > 4 {
                let place = if rng.chance(200) { rng.range(0, 4) as usize } else { 0 };
                let segment = under_way.remove(place);
                for _ in 0..[0, 1, 1, 1, 1, 1, 1, 2][rng.range(0, 8) as usize] {
                    let action = conn.guest_gets(segment);
                    assert_eq!(action.forged, 0, "seed {seed}");
                }
            }
        }
        // The last word arrives.
        let action = conn.guest_gets(far.pack(conn.ack(arrived)));
        assert_eq!((action.forged, conn.flow.forged), (0, 0), "seed {seed}");
        assert!(!conn.flow.has(sys::FLOW_FEEDBACK_LOST), "seed {seed}");
        let heard = conn.flow.heard;
        assert_eq!((heard.ect0_bytes, heard.ce_bytes), (far.ect0_bytes, far.ce_bytes));
        assert_eq!(conn.flow.unreported_bytes, sent - arrived, "seed {seed}");
        assert_eq!(conn.flow.marks == 0, marked_bytes == 0, "seed {seed}");
    }
}

#[test]
fn what_the_network_repeats_is_no_forgery() {
    // The receiver half counts what came, and a network may let it come twice.
    let (mut conn, mss_bytes) = flying("dctcp", 5);
    let mut far = Far::new();
    let action = conn.guest_gets(far.gets(12 * mss_bytes, 0).pack(conn.ack(10 * mss_bytes)));
    assert_eq!((action.forged, state(&conn)), (0, sys::FLOW_FEEDBACK_HEARD));
    assert_eq!(conn.flow.unreported_bytes, 0);
    let alpha = |conn: &Conn| conn.flow.cc.own[sys::DCTCP_ALPHA as usize];
    assert_eq!(alpha(&conn), 1024 - 64);
    // What is too much does not make the marks beside it a smaller share of what was sent.
    conn.send_segs(10, 20);
    conn.guest_gets(far.gets(20 * mss_bytes, 4 * mss_bytes).pack(conn.ack(14 * mss_bytes)));
    assert_eq!(state(&conn), sys::FLOW_FEEDBACK_HEARD);
    assert_eq!(alpha(&conn), 960 - 60 + 64 * 4 / 10);
}

#[test]
fn counters_of_what_was_never_sent_are_not_believed() {
    for claim in [(100 << 10, 0), (0, 100 << 10), (4 << 20, 4 << 20), (50 << 10, 50 << 10)] {
        for fack in [false, true] {
            let (mut conn, mss_bytes) = flying("dctcp", 5);
            let mut far = Far::new();
            far.gets(claim.0, claim.1);
            let segment =
                if fack { far.fack(&conn, mss_bytes) } else { far.pack(conn.ack(mss_bytes)) };
            let action = conn.guest_gets(segment);
            assert_eq!((action.forged, conn.flow.forged), (1, 1), "{claim:?}");
            assert!(conn.flow.has(sys::FLOW_FEEDBACK_LOST));
            assert_eq!(is_consumed(&action), fack);
        }
    }
}

#[test]
fn counters_that_run_back_are_not_believed() {
    for back in [(1, 0), (0, 1), (5000, 5000), (1 << 22, 0)] {
        let (mut conn, mss_bytes) = flying("dctcp", 5);
        let mut far = Far::new();
        conn.guest_gets(far.gets(2 * mss_bytes, mss_bytes).pack(conn.ack(3 * mss_bytes)));
        assert_eq!(state(&conn), sys::FLOW_FEEDBACK_HEARD);
        far.ect0_bytes = far.ect0_bytes.wrapping_sub(back.0) & COUNTER_MASK;
        far.ce_bytes = far.ce_bytes.wrapping_sub(back.1) & COUNTER_MASK;
        let action = conn.guest_gets(far.pack(conn.ack(4 * mss_bytes)));
        assert_eq!((action.forged, conn.flow.forged), (1, 1), "{back:?}");
        assert!(conn.flow.has(sys::FLOW_FEEDBACK_LOST));
    }
}

#[test]
fn who_was_not_believed_once_is_a_classic_receiver() {
    for name in ["reno-ecn", "dctcp"] {
        let (mut conn, mss_bytes) = flying(name, 5);
        let mut far = Far::new();
        // ECE on that very segment counts already.
        conn.guest_gets(far.gets(1 << 20, 0).pack(conn.ack(mss_bytes).ece()));
        assert_eq!((conn.flow.reductions, conn.flow.cc.ssthresh_segs), (1, 5), "{name}");
        // Reports are stripped and consumed as before, but say nothing any more.
        let heard = conn.flow.heard;
        let marked = conn.guest_gets(far.gets(0, mss_bytes).pack(conn.ack(2 * mss_bytes)));
        assert_eq!((marked.strip, marked.forged), (1, 0));
        assert!(is_consumed(&conn.guest_gets(far.fack(&conn, 2 * mss_bytes))));
        assert_eq!(conn.flow.heard, heard);
        assert_eq!(conn.flow.marks, 1);
        assert!(
            is_ect0(&conn.send(10 * mss_bytes, mss_bytes)),
            "its ECE is still worth asking for"
        );
    }
}

#[test]
fn a_stranger_who_guesses_no_ack_changes_nothing() {
    // RFC 5961, 5: an acknowledgement far off is not the far end's.
    let mut rng = Rng::new(3);
    let (mut conn, mss_bytes) = flying("dctcp", 5);
    let mut far = Far::new();
    conn.guest_gets(far.gets(mss_bytes, 0).pack(conn.ack(mss_bytes)));
    let before = conn.flow;
    for _ in 0..1000 {
        let off = rng.range(1 << 22, (1 << 32) - (1 << 22)) as u32;
        let counters = (rng.next() as u32 & COUNTER_MASK, rng.next() as u32 & COUNTER_MASK);
        let action = conn.guest_gets(conn.ack(off).fack(counters.0, counters.1));
        assert!(is_consumed(&action));
    }
    conn.flow.0.last_seen_ms = before.last_seen_ms;
    assert_eq!(conn.flow.0, before.0);
}

#[test]
fn malformed_options_are_stripped_and_counted() {
    let (mut conn, mss_bytes) = flying("dctcp", 5);
    let action = conn.guest_gets(conn.ack(mss_bytes).ours_bad());
    assert_eq!((action.strip, action.forged, conn.flow.forged), (1, 1, 1));
    assert_eq!(conn.flow.snd_una, conn.seq(mss_bytes), "the ACK is one all the same");
    let mut conn = Conn::established(Params::default(), 5);
    conn.send_segs(0, 4);
    for segment in [conn.ack(0).ours_bad(), conn.ack(0).pack(9, 9), conn.ack(0).accept()] {
        let action = conn.guest_gets(segment);
        assert_eq!((action.strip, action.forged), (1, 1));
    }
    assert_eq!((conn.flow.forged, conn.flow.marks), (3, 0));
}

/// A stream of which every segment is acknowledged, with `alter` made of each ACK.
fn stream(conn: &mut Conn, from_segs: u32, to_segs: u32, alter: impl Fn(u32, Seg) -> Seg) {
    let mss_bytes = conn.mss();
    for number in from_segs..to_segs {
        conn.send(number * mss_bytes, mss_bytes);
        let ack = conn.ack((number + 1) * mss_bytes);
        conn.guest_gets(alter(number, ack));
    }
}

#[test]
fn a_far_end_that_never_reports_is_given_up() {
    for name in ["reno-ecn", "dctcp"] {
        // Our acceptance may have been lost: it would still echo marks, had there been some.
        let mut conn = Conn::to_vcc(underlay(name), 5);
        stream(&mut conn, 0, 40, |_, ack| ack);
        assert_eq!(state(&conn), 0, "{name}: so much may be on its way");
        stream(&mut conn, 40, 2000, |_, ack| ack);
        assert_eq!(state(&conn), sys::FLOW_FEEDBACK_LOST, "{name}");
        let mss_bytes = conn.mss();
        assert!(is_ect0(&conn.send(2000 * mss_bytes, mss_bytes)), "{name}");
        assert_eq!(conn.flow.forged, 0, "it is gone, not wrong");

        // It did: a middlebox takes the options away, and the echo beside them is left.
        let mut conn = Conn::to_vcc(underlay(name), 5);
        stream(&mut conn, 0, 2000, |number, ack| if number % 20 == 0 { ack.ece() } else { ack });
        assert_eq!(state(&conn), sys::FLOW_FEEDBACK_LOST, "{name}");
        assert!(is_ect0(&conn.send(2000 * mss_bytes, mss_bytes)), "{name}");
        assert!(conn.flow.reductions > 10);
    }
}

#[test]
fn a_far_end_that_falls_silent_is_given_up() {
    let mut conn = Conn::to_vcc(underlay("dctcp"), 5);
    let mss_bytes = conn.mss();
    let reported =
        |number: u32, ack: Seg| ack.pack((1 + (number + 1) * mss_bytes) & COUNTER_MASK, 0);
    // ECE came beside reports, from a vcc that echoes. When that is gone, no guest echoes.
    stream(
        &mut conn,
        0,
        200,
        |number, ack| {
            if number % 10 == 0 { reported(number, ack) } else { ack.ece() }
        },
    );
    assert_eq!(state(&conn), sys::FLOW_FEEDBACK_HEARD);
    stream(&mut conn, 200, 201, reported);
    stream(&mut conn, 201, 4000, |_, ack| ack);
    assert!(conn.flow.has(sys::FLOW_FEEDBACK_LOST) && conn.flow.has(sys::FLOW_UNHEARD));
    // It was only late: the counters have gone on while data was ECT, and say what was missed.
    conn.flow.0.marks = 0;
    let missed_bytes = conn.flow.unreported_bytes;
    let received_bytes = 4000 * mss_bytes;
    conn.send(received_bytes, mss_bytes);
    let ect0_bytes = (conn.flow.heard.ect0_bytes + missed_bytes - mss_bytes) & COUNTER_MASK;
    let late = conn.ack(received_bytes).pack(ect0_bytes, mss_bytes);
    let action = conn.guest_gets(late);
    assert_eq!((state(&conn), action.forged), (sys::FLOW_FEEDBACK_HEARD, 0));
    assert_eq!(conn.flow.marks, 1);
    assert!(is_ect0(&conn.send(received_bytes + mss_bytes, mss_bytes)));
}

/// Counters come round every 16 MiB: after a long silence they only say where to go on from.
#[test]
fn after_any_silence_reports_are_believed_again() {
    for missed_mib in [1u32, 7, 9, 15, 17, 40] {
        let mut conn = Conn::to_vcc(underlay("dctcp"), 5);
        let mss_bytes = conn.mss();
        let segs = (missed_mib << 20) / mss_bytes;
        // It echoes, so data stays ECT, and the far end counts on.
        stream(&mut conn, 0, segs, |number, ack| if number % 50 == 0 { ack.ece() } else { ack });
        assert_eq!(state(&conn), sys::FLOW_FEEDBACK_LOST, "{missed_mib} MiB");
        let marks = conn.flow.marks;
        let mut far = Far::new();
        far.gets(segs * mss_bytes / 2, segs * mss_bytes / 2);
        conn.send(segs * mss_bytes, mss_bytes);
        let action = conn.guest_gets(far.pack(conn.ack((segs + 1) * mss_bytes)));
        assert_eq!((state(&conn), action.forged), (sys::FLOW_FEEDBACK_HEARD, 0), "{missed_mib}");
        assert_eq!(conn.flow.marks, marks, "those were answered by ECE");
        conn.send((segs + 1) * mss_bytes, mss_bytes);
        conn.guest_gets(far.gets(0, mss_bytes).pack(conn.ack((segs + 2) * mss_bytes)));
        assert_eq!((conn.flow.marks, conn.flow.forged), (marks + 1, 0), "{missed_mib} MiB");
    }
}

#[test]
fn a_timeouts_repair_is_no_silence() {
    // RFC 3168, 6.1.5: what is sent again is not ECT, so nobody reports it; and the ACK that it
    // brings jumps over all that was reported before.
    for segs in [100u32, 400] {
        let big = params(|p| p.initial_window_segs = segs);
        let mut conn = Conn::to_vcc(big, 5);
        let mss_bytes = conn.mss();
        conn.send_segs(0, segs);
        let far = (segs - 1) * mss_bytes;
        for _ in 1..segs {
            conn.guest_gets(conn.ack(0).pack(1 + far, 0).sack());
        }
        // The hole is repaired by the guest's timer; its retransmission is lost once.
        conn.send(0, mss_bytes);
        conn.wait_us(3_000_000).deadline();
        assert_eq!(u32::from(conn.flow.ca_state), sys::CA_LOSS);
        conn.send(0, mss_bytes);
        conn.peer_ack_segs(segs);
        assert_eq!(state(&conn), sys::FLOW_FEEDBACK_HEARD, "{segs} segments");
        // And what follows is judged from there.
        conn.send(segs * mss_bytes, mss_bytes);
        conn.peer_ack((segs + 1) * mss_bytes);
        assert_eq!(state(&conn), sys::FLOW_FEEDBACK_HEARD, "{segs} segments");
    }
}

#[test]
fn retransmissions_that_nobody_reports_leave_no_trace() {
    // Counted as sent for ever, they would come round to zero at last.
    let mut conn = Conn::to_vcc(Params::default(), 5);
    let mss_bytes = conn.mss();
    conn.flow.0.unreported_bytes = u32::MAX - 10 * mss_bytes;
    conn.send_segs(0, 20);
    assert!(conn.flow.unreported_bytes > 1 << 29);
    let action = conn.guest_gets(conn.ack(20 * mss_bytes).pack(1 + 20 * mss_bytes, 0));
    assert_eq!((action.forged, state(&conn)), (0, sys::FLOW_FEEDBACK_HEARD));
}

#[test]
fn a_peer_under_vcc_is_no_native_dctcp() {
    // Its SYN-ACK came as ECT, whoever set that: its vcc latches ECE, which is answered by half.
    let mut conn = Conn::new(underlay("dctcp"), 5);
    conn.guest_syn(linux_syn().room(ROOM_BYTES));
    conn.peer_synack(linux_syn().ece().accept().ect0());
    conn.flow.0.cc.own[sys::DCTCP_ALPHA as usize] = 64;
    conn.send_segs(0, 10);
    conn.guest_gets(conn.ack(conn.mss()).ece());
    assert_eq!(conn.flow.cc.ssthresh_segs, 5);
}

/// The same traffic through a flow and through a `reno-ecn` twin without feedback: a far end that
/// is not believed, or not vcc at all, must not be worth more than that.
#[test]
fn distrust_is_never_worth_more_than_classic_ecn() {
    for name in ["reno-ecn", "dctcp", "dctcp-priority"] {
        for seed in 0..400 {
            let mut rng = Rng::new(seed);
            let change = |p: &mut sys::vcc_params| {
                // PRR's cwnd is of the flight, and that is the same for both.
                p.prr = 0;
                p.beta_1024 = [1024, 512, 0][seed as usize % 3];
            };
            let mut with = underlay(name);
            change(&mut with.0);
            let forger = rng.chance(700);
            let isn = rng.pick(&ISNS);
            let mut conn =
                if forger { Conn::to_vcc(with, isn) } else { Conn::established(with, isn) };
            let mut twin = Conn::established(params(change), isn);
            let mss_bytes = conn.mss();
            let mark_permille = rng.pick(&[5, 20, 100, 500]);
            let (mut sent, mut acked) = (0, 0);
            for step in 0..600 {
                // Both send what the larger window allows, so that both use theirs.
                let cwnd_segs = conn.cwnd().max(twin.cwnd());
                while sent - acked < cwnd_segs {
                    for conn in [&mut conn, &mut twin] {
                        conn.send(sent * mss_bytes, mss_bytes);
                    }
                    sent += 1;
                }
                acked += rng.range(1, u64::from(sent - acked).min(3) + 1) as u32;
                let mut ack = conn.ack(acked * mss_bytes);
                if rng.chance(mark_permille) {
                    ack = ack.ece();
                }
                twin.guest_gets(ack);
                if forger && (step == 0 || rng.chance(300)) {
                    ack = ack.pack(rng.next() as u32 & COUNTER_MASK, 0);
                    ack.0.feedback.ect0_bytes |= u32::from(step == 0) << 20;
                    ack.0.feedback.ect0_bytes &= u32::MAX >> (u32::from(step == 0) * 9);
                }
                conn.guest_gets(ack);
                assert!(
                    conn.cwnd() <= twin.cwnd(),
                    "{name}, seed {seed}, step {step}: {} beside {}",
                    conn.cwnd(),
                    twin.cwnd()
                );
            }
            assert_eq!(conn.flow.has(sys::FLOW_FEEDBACK_LOST), forger);
            assert_eq!(conn.flow.reductions > 0, twin.flow.reductions > 0);
        }
    }
}

#[test]
fn a_forged_fack_is_not_believed() {
    // Its acknowledgement is easily guessed where little is in flight; its number is not.
    let mut conn = Conn::to_vcc(Params::default(), 5);
    conn.send_segs(0, 8);
    let mss = conn.mss();
    for wrong in [1 << 24, 1 << 30, 1 << 31, 0xff00_0000] {
        let before = conn.flow;
        let forged = conn.ack(mss - 1).seq(conn.peer_seq(wrong)).fack(1, 8 * mss);
        conn.guest_gets(forged);
        assert_eq!((before.reductions, before.heard), (conn.flow.reductions, conn.flow.heard));
    }
    // Behind a super-segment that the guest has acknowledged already.
    conn.guest_gets(conn.ack(mss).len(60_000).ect0());
    conn.guest_acks(60_000);
    conn.guest_gets(conn.ack(mss - 1).fack(1, mss));
    assert_eq!(conn.flow.reductions, 1);
}

#[test]
fn a_mark_is_answered_whatever_the_reports_say() {
    for name in ["dctcp", "reno-ecn"] {
        for by_fack in [false, true] {
            let mut conn = Conn::to_vcc(underlay(name), 5);
            let mss = conn.mss();
            let mut windows = 0;
            for segs in 0..40 {
                // Every report says that nothing was marked; the far end's receiver knows better.
                conn.send_segs(segs, segs + 1);
                let acked = (segs + 1) * mss;
                if by_fack {
                    conn.now_us += 100;
                    conn.guest_gets(conn.ack(acked).ece());
                    conn.guest_gets(conn.ack(acked - 1).fack(1 + acked, 0));
                } else {
                    conn.now_us += 100;
                    conn.guest_gets(conn.ack(acked).ece().pack(1 + acked, 0));
                }
                windows = conn.flow.reductions;
            }
            assert!(windows >= 10, "{name}: {windows} reductions");
            assert!(conn.cwnd() <= 2, "{name}: {} segments", conn.cwnd());
        }
    }
}

#[test]
fn an_echo_that_reports_explain_is_not_answered_twice() {
    for by_fack in [false, true] {
        let mut conn = Conn::to_vcc(underlay("dctcp"), 5);
        let mss = conn.mss();
        // Until the first report, ECE is all that there is.
        conn.guest_gets(conn.ack(0).pack(1, 0));
        // So that a mark costs next to nothing.
        conn.flow.0.cc.own[sys::DCTCP_ALPHA as usize] = 1;
        let (mut sent, mut acked) = (0, 0);
        let mut send = |conn: &mut Conn, segs| {
            conn.send_segs(sent, sent + segs);
            sent += segs;
        };
        send(&mut conn, 8);
        // One mark; its ECE stays until CWR is there, a round trip later.
        for _ in 0..8 {
            acked += mss;
            let ack = conn.ack(acked).ece();
            if by_fack {
                conn.guest_gets(ack);
                conn.guest_gets(conn.ack(acked - 1).fack(1 + acked - mss, mss));
            } else {
                conn.guest_gets(ack.pack(1 + acked - mss, mss));
            }
            send(&mut conn, 1);
        }
        for _ in 0..8 {
            acked += mss;
            conn.guest_gets(conn.ack(acked).pack(1 + acked - mss, mss));
        }
        assert_eq!(conn.flow.reductions, 1);
        assert!(conn.flow.cc.ssthresh_segs >= 9, "{} segments", conn.flow.cc.ssthresh_segs);
    }
}
