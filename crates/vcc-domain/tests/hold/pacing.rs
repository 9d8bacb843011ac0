//! The rate of all connections of a guest (engine/guest_rate.h) where the port holds what exceeds it.

use vcc_domain::BufferSpec;
use vcc_engine::{Params, sys};

use crate::common::rules::by_guest_port;
use crate::ends::{Ends, Guest, MSS_BYTES, holding};
use crate::split::splitting;

const BYTES_PER_MS: u32 = 1000;
/// As in engine/guest_rate.h.
const BURST_BYTES: u64 = 65_536;
const WINDOW_BYTES: u32 = 400_000;

fn capped(params: Params) -> Params {
    Params(sys::vcc_params { police: 1, guest_rate_cap_bytes_per_ms: BYTES_PER_MS, ..params.0 })
}

fn retransmitting() -> Params {
    Params(sys::vcc_params { retransmit: 1, rto_min_us: 5_000, ..holding().0 })
}

fn guest(params: Params) -> Guest {
    let mut guest = Guest::with(capped(params), BufferSpec::default());
    guest.watch.splits = u32::from(params.0.act) == sys::ACT_SPLIT;
    guest
}

fn policed(guest: &Guest) -> u64 {
    guest.port.counters().get(sys::COUNT_POLICED) + guest.port.counters().get(sys::COUNT_DROPPED)
}

/// Each connection sends as fast as the port reads, and each peer acknowledges within a millisecond.
#[test]
fn connections_share_the_rate_in_turn_and_lose_nothing() {
    for params in [holding(), retransmitting(), splitting()] {
        let mut guest = guest(params);
        let mut all: Vec<Ends> = (0..4).map(Ends::new).collect();
        all.iter().for_each(|ends| ends.open(&mut guest, 60_000));
        let begun_ns = guest.now_ns;
        let mut sent = [0; 4];
        for _ in 0..2_000 {
            for (ends, sent) in all.iter_mut().zip(&mut sent) {
                let edge = ends.flow(&guest).right_edge.wrapping_sub(ends.seq(0));
                while *sent + MSS_BYTES as u32 <= edge {
                    let _ = guest.send(&ends.data(*sent, MSS_BYTES));
                    *sent += MSS_BYTES as u32;
                }
            }
            guest.wait_ms(1);
            for ends in &mut all {
                if ends.take(&mut guest) {
                    let _ = guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
                }
            }
            let ms = (guest.now_ns - begun_ns) / 1_000_000;
            let most_bytes = BURST_BYTES + MSS_BYTES as u64 + ms * u64::from(BYTES_PER_MS);
            let left_bytes = guest.watch.left_bytes;
            assert!(left_bytes <= most_bytes, "{left_bytes} of {most_bytes} after {ms} ms");
        }
        assert_eq!(policed(&guest), 0);
        let shares: Vec<u32> = all.iter().map(|ends| ends.in_sequence).collect();
        let total: u32 = shares.iter().sum();
        assert!(total >= 2_000 * BYTES_PER_MS, "{total}");
        for share in &shares {
            assert!((total / 5..total / 3).contains(share), "{shares:?}");
        }
        // What waits leaves without anything else happening.
        let ends = &mut all[0];
        while ends.in_sequence < sent[0] {
            let before = ends.in_sequence;
            guest.wait_ms(100);
            ends.take(&mut guest);
            let _ = guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
            assert!(ends.in_sequence > before, "{before} of {}", sent[0]);
        }
    }
}

/// Empties the bucket, so that the connection waits. Returns the bytes that it has sent.
fn exceed_the_rate(guest: &mut Guest, ends: &mut Ends) -> u32 {
    let mut offset = 0;
    for _ in 0..10 {
        for _ in 0..9 {
            let _ = guest.send(&ends.data(offset, MSS_BYTES));
            offset += MSS_BYTES as u32;
        }
        ends.take(guest);
        let _ = guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
    }
    let waits_from = ends.in_sequence;
    assert!(u64::from(waits_from) >= BURST_BYTES && waits_from < offset, "{waits_from}");
    offset
}

#[test]
fn a_connection_that_ends_while_it_waits_holds_up_nobody() {
    let mut guest = guest(holding());
    let (mut first, mut second) = (Ends::new(0), Ends::new(1));
    for ends in [&first, &second] {
        ends.open(&mut guest, 60_000);
    }
    let offset = exceed_the_rate(&mut guest, &mut first);
    let _ = guest.send(&second.data(0, MSS_BYTES));
    second.take(&mut guest);
    assert_eq!(second.in_sequence, 0, "behind the first");
    let mut reset = first.guest_ack(offset);
    reset.flags = vcc_frames::wire::RST;
    let _ = guest.send(&reset);
    guest.wait_ms(5);
    second.take(&mut guest);
    assert_eq!(second.in_sequence, MSS_BYTES as u32);
}

/// Without policing the rate binds nothing, as at the port in the kernel.
#[test]
fn without_policing_nothing_waits() {
    let mut params = capped(holding());
    params.0.police = 0;
    let mut guest = Guest::with(params, BufferSpec::default());
    let mut ends = Ends::new(0);
    ends.open(&mut guest, 60_000);
    let mut offset = 0;
    for _ in 0..20 {
        for _ in 0..10 {
            let _ = guest.send(&ends.data(offset, MSS_BYTES));
            offset += MSS_BYTES as u32;
        }
        ends.take(&mut guest);
        let _ = guest.receive(&ends.peer_ack(ends.in_sequence, WINDOW_BYTES));
    }
    assert_eq!(ends.in_sequence, offset);
}

/// Its rule has the rate, too, but does not police.
#[test]
fn a_connection_that_the_rate_does_not_bind_waits_for_nobody() {
    let policed = capped(holding());
    let unpoliced = Params(sys::vcc_params { police: 0, ..policed.0 });
    let mut guest = guest(policed);
    guest.port.set_rules(by_guest_port(&[policed, unpoliced]));
    let (mut bound, mut free) = (Ends::new(0), Ends::new(1));
    for ends in [&bound, &free] {
        ends.open(&mut guest, 60_000);
    }
    exceed_the_rate(&mut guest, &mut bound);
    let waits_from = bound.in_sequence;
    let _ = guest.send(&free.data(0, MSS_BYTES));
    free.take(&mut guest);
    bound.take(&mut guest);
    assert_eq!((free.in_sequence, bound.in_sequence), (MSS_BYTES as u32, waits_from));
}
