//! Windows below one segment (engine/cc/fractional_window.h): what is held leaves one by one, each in its time.

use vcc_domain::{BufferSpec, Verdict};
use vcc_engine::{Params, Underlay, sys};

use crate::ends::{Ends, Guest, MSS_BYTES, holding};
use crate::split::splitting;

const MSS: u32 = MSS_BYTES as u32;
const WINDOW_BYTES: u32 = 400_000;
const RTT_MS: u64 = 10;

/// Above its target, Swift halves the window in each round trip.
fn below(params: Params) -> Params {
    let swift = Underlay::all().find(|it| it.name() == "swift").expect("swift");
    let underlay = swift.number();
    Params(sys::vcc_params {
        underlay,
        window_floor_segs: 0,
        rtt_target_us: 1000,
        rto_min_us: 200_000,
        ..params.0
    })
}

/// A connection whose window has fallen below one segment, and the bytes that the guest has sent.
fn slowed(params: Params) -> (Guest, Ends, u32) {
    let mut guest = Guest::with(params, BufferSpec::default());
    guest.watch.splits = u32::from(params.0.act) == sys::ACT_SPLIT;
    let mut ends = Ends::new(0);
    // The path's least RTT, which keeps the target.
    let _ = guest.send(&ends.syn());
    guest.wait_ms(1);
    let _ = guest.receive(&ends.syn_ack(60_000));
    let _ = guest.send(&ends.guest_ack(0));
    let mut sent = 0;
    for _ in 0..40 {
        let edge = ends.flow(&guest).right_edge.wrapping_sub(ends.seq(0));
        while sent + MSS <= edge && sent < 200 * MSS {
            let _ = guest.send(&ends.data(sent, MSS_BYTES));
            sent += MSS;
        }
        ends.take(&mut guest);
        guest.wait_ms(RTT_MS);
        let _ = guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
    }
    (guest, ends, sent)
}

#[test]
fn segments_leave_one_by_one_in_intervals() {
    let retransmitting = Params(sys::vcc_params { retransmit: 1, ..holding().0 });
    for params in [holding(), retransmitting, splitting()] {
        let params = below(params);
        let (mut guest, mut ends, sent) = slowed(params);
        let part_1024 = ends.flow(&guest).cc.part_1024;
        let act = params.0.act;
        assert_eq!((ends.flow(&guest).cc.cwnd_segs, part_1024 < 0), (1, true), "{act} {part_1024}");
        let mut gaps_ms = Vec::new();
        let mut last_ns = None;
        for _ in 0..20_000 {
            if ends.in_sequence == sent || gaps_ms.len() > 20 {
                break;
            }
            let before = ends.in_sequence;
            if ends.take(&mut guest) && ends.in_sequence > before {
                assert_eq!(ends.in_sequence - before, MSS, "one at a time");
                gaps_ms.extend(last_ns.map(|last_ns| (guest.now_ns - last_ns) / 1_000_000));
                last_ns = Some(guest.now_ns);
                // Still above the target, so the window stays as small as it is.
                guest.wait_ms(RTT_MS);
                let _ = guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
            }
            guest.wait_ms(1);
        }
        assert!(gaps_ms.len() > 10, "{gaps_ms:?}");
        assert!(gaps_ms.iter().all(|gap_ms| *gap_ms > 2 * RTT_MS), "{gaps_ms:?}");
    }
}

#[test]
fn with_a_floor_none_waits() {
    let params = Params(sys::vcc_params { window_floor_segs: 1, ..below(holding()).0 });
    let (mut guest, mut ends, _) = slowed(params);
    assert_eq!((ends.flow(&guest).cc.cwnd_segs, ends.flow(&guest).cc.part_1024), (1, 0));
    for _ in 0..10 {
        let before = ends.in_sequence;
        ends.take(&mut guest);
        assert_eq!(ends.in_sequence - before, MSS);
        guest.wait_ms(RTT_MS);
        let _ = guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
    }
}

/// Without a buffer: what waits is the ACK that admits the next segment.
fn showing() -> Params {
    below(Params(sys::vcc_params { act: sys::ACT_WINDOW as u8, ..holding().0 }))
}

/// One segment, which the peer acknowledges after a round trip.
fn one_round(guest: &mut Guest, ends: &mut Ends, sent: &mut u32) -> Verdict {
    let _ = guest.send(&ends.data(*sent, MSS_BYTES));
    *sent += MSS;
    assert!(ends.take(guest), "nothing is held");
    guest.wait_ms(RTT_MS);
    guest.shown.clear();
    guest.receive(&ends.peer_ack(*sent, WINDOW_BYTES))
}

#[test]
fn where_nothing_is_held_the_ack_waits() {
    let (mut guest, mut ends, mut sent) = slowed(showing());
    assert!(ends.flow(&guest).cc.part_1024 < 0);
    for _ in 0..10 {
        let begun_ns = guest.now_ns;
        assert_eq!(one_round(&mut guest, &mut ends, &mut sent), Verdict::Held);
        while guest.shown.is_empty() {
            guest.wait_ms(1);
        }
        let waited_ms = (guest.now_ns - begun_ns) / 1_000_000;
        // No longer than an RTT and a quarter of the RTO.
        assert!((2 * RTT_MS..=RTT_MS + 51).contains(&waited_ms), "{waited_ms}");
    }
}

#[test]
fn a_port_that_ends_gives_the_guest_what_waits() {
    let (mut guest, mut ends, mut sent) = slowed(showing());
    // Those of before.
    guest.wait_ms(100);
    assert_eq!(one_round(&mut guest, &mut ends, &mut sent), Verdict::Held);
    assert!(guest.shown.is_empty());
    guest.end_port();
    assert_eq!(guest.shown.len(), 1);
    assert_eq!(guest.port.next_deadline_ns().filter(|due_ns| *due_ns <= guest.now_ns), None);
}
