//! `receive = "buffer"`: data is acknowledged beyond the guest's window and ring, and given to it as it
//! runs.

use std::sync::Arc;

use vcc_domain::{CannotTakeOver, Out, Port};
use vcc_engine::{Params, sys};
use vcc_frames::wire::*;
use vcc_frames::{Packet, options, payload};

use crate::common::memory::Memory;
use crate::common::rng::Rng;
use crate::common::rules::by_guest_port;
use crate::common::segment::Segment;
use crate::guest::{FIRST_WINDOW, Guest, IRS, SEG_BYTES};
use crate::receiver::{MOST_BYTES, Receiver, buffering};

const MB: u32 = 1_000_000;

fn fin(receiver: &mut Receiver, at: u32) -> Packet {
    receiver.fin_at = Some(at);
    Packet { flags: FIN | ACK, ..receiver.peer_packet(at, 0) }
}

#[test]
fn a_guest_that_does_not_run_is_no_limit() {
    let mut receiver = Receiver::buffering();
    assert_eq!(receiver.send_up_to(0, MB), MB);
    let end = fin(&mut receiver, MB);
    receiver.arrive(&end);
    receiver.wait_ms(50);
    assert_eq!((receiver.acked, receiver.nxt), (MB, 0), "acknowledged without the guest");
    assert!(receiver.given <= FIRST_WINDOW);
    receiver.run_to_rest();
    assert_eq!((receiver.nxt, receiver.fin, receiver.duplicates), (MB, true, 0));
    let sum: usize = receiver.given_frames.iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(sum, MB as usize, "each byte once");
    assert_eq!((receiver.acked, receiver.guest.port.promised_bytes()), (MB + 1, 0));
}

/// A ring of few buffers, and one of too few to leave some for others.
#[test]
fn a_small_ring_gets_all_of_it_in_turns() {
    for ring_segs in [1, 4, 9, 32] {
        let mut receiver = Receiver::buffering();
        receiver.ring_segs = ring_segs;
        receiver.tell_room();
        assert_eq!(receiver.send_up_to(0, MB / 4), MB / 4);
        receiver.wait_ms(50);
        assert_eq!(receiver.acked, MB / 4);
        receiver.run_to_rest();
        assert_eq!((receiver.nxt, receiver.duplicates), (MB / 4, 0), "{ring_segs} buffers");
    }
}

#[test]
fn a_super_segment_is_given_in_parts_that_fit_the_window() {
    let mut receiver = Receiver::buffering();
    receiver.space_bytes = 3_500;
    let sent = receiver.send_up_to(0, FIRST_WINDOW);
    receiver.run_to_rest();
    receiver.edge = 0;
    receiver.acknowledge();
    let mut offset = sent;
    for _ in 0..3 {
        let packet = receiver.peer_packet(offset, 20 * SEG_BYTES);
        let mut frame = vcc_domain::Frame::full(packet.frame());
        frame.gso_size = SEG_BYTES as u16;
        receiver.arrive_frame(frame, offset + 20 * SEG_BYTES);
        offset += 20 * SEG_BYTES;
    }
    receiver.wait_ms(50);
    assert_eq!(receiver.acked, offset);
    receiver.run_to_rest();
    assert_eq!((receiver.nxt, receiver.duplicates), (offset, 0));
}

#[test]
fn a_guest_that_never_reads_shuts_the_window_and_opens_it_again() {
    let mut receiver = Receiver::buffering();
    receiver.application_reads = false;
    let sent = receiver.send_up_to(0, 10 * MB);
    receiver.wait_ms(50);
    receiver.run_to_rest();
    let sent = receiver.send_up_to(sent, 10 * MB);
    assert!(sent < MOST_BYTES + 2 * FIRST_WINDOW, "{sent} bytes are stored");
    assert!(sent > MOST_BYTES - 2 * SEG_BYTES, "{sent} bytes are stored");
    assert!(receiver.guest.port.promised_bytes() < 2 * MOST_BYTES);
    receiver.wait_ms(50);
    assert_eq!(receiver.nxt, FIRST_WINDOW);
    // The peer's probe, of a byte or of none, is answered though the guest does not run.
    for (offset, bytes) in [(sent - 1, 0), (receiver.told, 1)] {
        receiver.heard.clear();
        receiver.data(offset, bytes);
        let last = receiver.heard.last();
        let last = last.unwrap_or_else(|| panic!("{offset} of {sent}, {bytes} bytes"));
        assert!(last.ack == sent && last.window < 2 * SEG_BYTES, "{last:?}");
    }
    // The guest is asked for its window, less and less often.
    let mut asked = 0;
    for _ in 0..600 {
        receiver.wait_ms(1000);
        asked += receiver.ring.len();
        receiver.run();
    }
    assert!((8..30).contains(&asked), "{asked} probes");
    assert_eq!(receiver.guest.port.counters().get(sys::COUNT_PROMISE_BROKEN), 0);
    receiver.application_reads = true;
    receiver.run_to_rest();
    assert_eq!((receiver.nxt, receiver.acked, receiver.duplicates), (sent, sent, 0));
    assert!(receiver.told > sent + MOST_BYTES / 3);
}

/// Its window update has been lost between the guest and the port.
#[test]
fn a_window_that_has_opened_unheard_is_asked_for() {
    let mut receiver = Receiver::buffering();
    receiver.application_reads = false;
    let sent = receiver.send_up_to(0, 5 * FIRST_WINDOW);
    receiver.run_to_rest();
    receiver.read_bytes = receiver.nxt;
    let given = receiver.given;
    receiver.wait_ms(1_100);
    assert_eq!(receiver.given, given);
    receiver.application_reads = true;
    receiver.run_to_rest();
    assert_eq!(receiver.nxt, sent);
}

#[test]
fn a_reset_of_either_end_ends_it() {
    for by_guest in [true, false] {
        let mut receiver = Receiver::buffering();
        let sent = receiver.send_up_to(0, MB);
        receiver.run();
        assert!(receiver.guest.port.promised_bytes() > 0);
        match by_guest {
            true => {
                let own = receiver.own_packet();
                receiver.speak(&Packet { flags: RST | ACK, ..own });
                assert!(receiver.heard.last().is_some_and(|it| it.flags & RST != 0));
            }
            false => {
                let reset = Packet { flags: RST, ..receiver.peer_packet(sent, 0) };
                receiver.arrive(&reset);
                receiver.run_to_rest();
                assert!(receiver.reset, "the guest believes it");
            }
        }
        assert_eq!(receiver.guest.port.promised_bytes(), 0);
        let given = receiver.given_frames.len();
        receiver.wait_ms(120_000);
        assert_eq!(receiver.given_frames.len(), given);
    }
}

/// After its own FIN a guest may answer data with a RST.
#[test]
fn a_half_closed_guest_gets_what_was_promised_and_no_more_is() {
    let mut receiver = Receiver::buffering();
    let sent = receiver.send_up_to(0, MB);
    receiver.wait_ms(50);
    let own = receiver.own_packet();
    receiver.may_shrink = true;
    receiver.speak(&Packet { flags: FIN | ACK, ..own });
    receiver.own_nxt = 1;
    receiver.data(sent, SEG_BYTES);
    receiver.wait_ms(50);
    assert_eq!(receiver.acked, sent);
    receiver.run_to_rest();
    assert_eq!(receiver.nxt, sent);
    receiver.data(sent, SEG_BYTES);
    let end = fin(&mut receiver, sent + SEG_BYTES);
    receiver.arrive(&end);
    receiver.run_to_rest();
    assert_eq!((receiver.nxt, receiver.fin), (sent + SEG_BYTES, true));
    assert_eq!(receiver.acked, sent + SEG_BYTES + 1, "by the guest itself");
}

#[test]
fn timestamps_pass_paws() {
    let guest = Guest { stamps: Some((700, 100)), ..Guest::with(buffering()) };
    let mut receiver = Receiver::new(guest);
    let mut sent = 0;
    for turn in 1..40 {
        let sent_at = 100 + 3 * turn;
        receiver.guest.stamps = Some((700 + turn, sent_at));
        sent = receiver.send_up_to(sent, turn * 30 * SEG_BYTES);
        // Overtaken data has an older one.
        receiver.guest.stamps = Some((700 + turn, sent_at + 1));
        receiver.data(sent + SEG_BYTES, SEG_BYTES);
        receiver.guest.stamps = Some((700 + turn, sent_at));
        receiver.data(sent, SEG_BYTES);
        sent += 2 * SEG_BYTES;
        if turn % 3 == 0 {
            receiver.run();
        }
    }
    receiver.run_to_rest();
    assert_eq!((receiver.nxt, receiver.acked, receiver.paws), (sent, sent, 0));
}

/// Of the guest, by which its peer reads its windows.
#[test]
fn the_window_is_within_what_the_scale_can_express() {
    for scale in [0, 2, 14] {
        let mut receiver = Receiver::new(Guest { scale, ..Guest::with(buffering()) });
        receiver.edge = 0;
        receiver.acknowledge();
        let sent = receiver.send_up_to(0, 2 * MB);
        receiver.wait_ms(50);
        let reach = 65_535_u64 << scale;
        let windows = receiver.heard.iter().map(|said| u64::from(said.window));
        assert!(windows.max().is_some_and(|most| most <= reach));
        assert_eq!(receiver.acked, sent);
        // An acknowledgement opens the window again, up to the buffer.
        assert_eq!(sent, 2 * MB, "scale {scale}");
        receiver.run_to_rest();
        assert_eq!((receiver.nxt, receiver.duplicates), (sent, 0));
    }
}

/// The guest waits for it, and perhaps sends nothing until then.
#[test]
fn what_stored_data_acknowledges_reaches_the_guest() {
    for bytes in [1, 500] {
        let mut receiver = Receiver::buffering();
        let sent = receiver.send_up_to(0, 200 * SEG_BYTES);
        let own = Packet { payload: payload(bytes), ..receiver.own_packet() };
        receiver.speak(&own);
        receiver.own_nxt = bytes as u32;
        receiver.data(sent, SEG_BYTES);
        while let Some(frame) = receiver.ring.pop_back() {
            let segment = Segment::read(&frame).expect("TCP");
            if segment.payload.is_empty() {
                let una = segment.ack.wrapping_sub(own.seq);
                assert_eq!(
                    (una, segment.seq.wrapping_sub(IRS.wrapping_add(1))),
                    (bytes as u32, receiver.given)
                );
                break;
            }
        }
        assert!(!receiver.ring.is_empty());
    }
}

/// Its number is not the guest's next one.
#[test]
fn an_ack_behind_stored_data_reaches_the_guest() {
    let mut receiver = Receiver::buffering();
    let sent = receiver.send_up_to(0, 200 * SEG_BYTES);
    let own = Packet { payload: payload(100), ..receiver.own_packet() };
    receiver.speak(&own);
    receiver.own_nxt = 100;
    receiver.data(sent, 0);
    receiver.run();
    assert_eq!(receiver.una, 100);
}

#[test]
fn a_hole_is_reported_and_its_end_acknowledges_all() {
    let mut receiver = Receiver::buffering();
    receiver.data(0, SEG_BYTES);
    receiver.heard.clear();
    for number in [2, 3, 5] {
        receiver.data(number * SEG_BYTES, SEG_BYTES);
    }
    let at = |number: u32| IRS.wrapping_add(1).wrapping_add(number * SEG_BYTES);
    let blocks = options::sack(&[(at(5), at(6)), (at(2), at(4))]);
    let last = receiver.heard.last().expect("a duplicate");
    assert_eq!((last.ack, receiver.heard.len()), (SEG_BYTES, 3));
    assert!(last.options.windows(blocks.len()).any(|it| it == blocks), "{last:?}");
    receiver.data(SEG_BYTES, SEG_BYTES);
    assert_eq!(receiver.acked, 4 * SEG_BYTES);
    receiver.data(4 * SEG_BYTES, SEG_BYTES);
    assert_eq!(receiver.acked, 6 * SEG_BYTES);
    receiver.run_to_rest();
    assert_eq!((receiver.nxt, receiver.duplicates), (6 * SEG_BYTES, 0));
}

#[test]
fn a_fin_that_comes_first_waits_for_the_data_before_it() {
    let mut receiver = Receiver::buffering();
    let end = fin(&mut receiver, 3 * SEG_BYTES);
    receiver.arrive(&end);
    receiver.run_to_rest();
    assert!(!receiver.fin);
    for number in [1, 2, 0] {
        receiver.data(number * SEG_BYTES, SEG_BYTES);
    }
    receiver.run_to_rest();
    assert_eq!(
        (receiver.nxt, receiver.fin, receiver.acked),
        (3 * SEG_BYTES, true, 3 * SEG_BYTES + 1)
    );
}

/// It harms itself alone.
#[test]
fn a_guest_that_acknowledges_what_it_was_not_given_gains_nothing() {
    let mut receiver = Receiver::buffering();
    receiver.is_honest = false;
    let sent = receiver.send_up_to(0, MB);
    for ack in [sent / 2, sent, sent + MB, 3, sent] {
        let own = receiver.guest.guest_packet(ack, FIRST_WINDOW);
        receiver.edge = receiver.edge.max(ack + FIRST_WINDOW);
        receiver.speak(&own);
        receiver.wait_ms(2_000);
        receiver.ring.clear();
    }
    assert_eq!(receiver.guest.port.promised_bytes(), 0);
}

#[test]
fn a_guest_whose_edge_moves_back_gets_all_of_it() {
    let mut receiver = Receiver::buffering();
    receiver.is_honest = false;
    let sent = receiver.send_up_to(0, MB / 4);
    receiver.run();
    receiver.space_bytes = 5_000;
    receiver.acknowledge();
    let given = receiver.given;
    receiver.run_to_rest();
    assert!(receiver.given >= given);
    receiver.space_bytes = FIRST_WINDOW;
    for _ in 0..200 {
        receiver.acknowledge();
        receiver.wait_ms(2_000);
        receiver.run_to_rest();
    }
    assert_eq!((receiver.nxt, receiver.guest.port.promised_bytes()), (sent, 0));
}

#[test]
fn what_only_the_port_has_is_in_the_ledger() {
    let mut receiver = Receiver::buffering();
    let memory = Arc::new(Memory::default());
    receiver.guest.port.keep_ledger(memory.clone());
    let in_ring = receiver.send_up_to(0, 20 * SEG_BYTES);
    receiver.wait_ms(50);
    assert_eq!(memory.promises(), [], "the guest's ring has it");
    let sent = receiver.send_up_to(in_ring, MB);
    assert_eq!(memory.promises().len(), 1);
    receiver.run();
    // The process is killed, and another one takes its place.
    let [promise] = memory.promises()[..] else { panic!("a promise") };
    receiver.guest.port = Port::new(buffering(), 16);
    let mut out = Out::default();
    receiver.guest.port.end_promises(receiver.guest.now_ns, [promise], &mut out);
    let reset = |frame: &vcc_domain::Frame| {
        let segment = Segment::read(&frame.bytes).expect("TCP");
        assert!(segment.has(RST));
        segment.seq
    };
    let to_guest: Vec<u32> = out.to_guest.iter().map(reset).collect();
    assert_eq!(to_guest, [IRS.wrapping_add(1).wrapping_add(receiver.given)]);
    assert_eq!(out.to_fabric.iter().map(reset).collect::<Vec<_>>(), [promise.snd_nxt]);
    // What the peer sends is refused.
    receiver.data(sent, SEG_BYTES);
    assert!(receiver.heard.last().is_some_and(|said| said.flags & RST != 0));
}

/// Both ends have sent their FINs, and the guest has not read the peer's data yet.
fn closed(receiver: &mut Receiver, end: u32) {
    assert_eq!(receiver.send_up_to(0, end), end);
    let end = fin(receiver, end);
    receiver.arrive(&end);
    receiver.may_shrink = true;
    let own = receiver.own_packet();
    receiver.speak(&Packet { flags: FIN | ACK, ..own });
    receiver.own_nxt = 1;
}

#[test]
fn after_both_fins_the_ledger_still_has_what_only_the_port_has() {
    let mut receiver = Receiver::buffering();
    let memory = Arc::new(Memory::default());
    receiver.guest.port.keep_ledger(memory.clone());
    closed(&mut receiver, MB);
    assert_eq!(memory.promises().len(), 1);
    // As a socket that is woken repeats it.
    let own = receiver.own_packet();
    receiver.speak(&own);
    assert_eq!(memory.promises().len(), 1);
    receiver.run_to_rest();
    assert_eq!((receiver.nxt, receiver.fin, memory.promises().len()), (MB, true, 0));
}

/// As into a live connection (RFC 5961, 4): the guest's socket is still there, and answers.
#[test]
fn a_blind_syn_after_both_fins_ends_nothing() {
    for is_ruled in [false, true] {
        let mut guest = Guest::with(buffering());
        if is_ruled {
            guest.port.set_rules(by_guest_port(&[buffering()]));
        }
        let mut receiver = Receiver::new(guest);
        let memory = Arc::new(Memory::default());
        receiver.guest.port.keep_ledger(memory.clone());
        closed(&mut receiver, MB);
        let stray = receiver.peer_packet(0, 0);
        let seq = stray.seq.wrapping_sub(123_456);
        receiver.arrive(&Packet { flags: SYN, seq, ack: 0, ..stray });
        assert_eq!(memory.promises().len(), 1, "under rules: {is_ruled}");
        receiver.run_to_rest();
        assert_eq!((receiver.nxt, receiver.fin, receiver.duplicates), (MB, true, 0));
        assert!(receiver.heard.iter().all(|said| said.flags & RST == 0));
    }
}

/// A guest that is paused has not read its ring, and may still discard what lies there.
#[test]
fn after_both_fins_what_the_guest_has_discarded_comes_again() {
    for receive in [sys::RECEIVE_RING, sys::RECEIVE_BUFFER] {
        let params = Params::with(|params| params.receive = receive as u8);
        let mut receiver = Receiver::new(Guest::with(params));
        let end = 20 * SEG_BYTES;
        closed(&mut receiver, end);
        receiver.wait_ms(u64::from(params.0.idle_closed_ms) + 5_000);
        receiver.ring.clear();
        for _ in 0..100 {
            receiver.acknowledge();
            receiver.wait_ms(500);
            receiver.run_to_rest();
        }
        assert_eq!((receiver.nxt, receiver.guest.port.promised_bytes()), (end, 0), "{receive}");
    }
}

#[test]
fn a_guest_does_not_bring_promises_to_where_no_ledger_is() {
    let mut receiver = Receiver::buffering();
    receiver.send_up_to(0, MB);
    let (_, state) = receiver.guest.port.hand_over("a test", std::iter::empty());
    let mut port = Port::new(buffering(), 16);
    port.require_ledger();
    let refused = port.take_over(receiver.guest.now_ns, &state);
    assert!(matches!(refused, Err(CannotTakeOver::NoLedger(1))), "{refused:?}");
    assert_eq!(port.flows().count(), 0);
    port.keep_ledger(Arc::new(Memory::default()));
    port.take_over(receiver.guest.now_ns, &state).expect("a state");
}

#[test]
fn the_ledger_forgets_what_the_guest_has_acknowledged() {
    let mut receiver = Receiver::buffering();
    let memory = Arc::new(Memory::default());
    receiver.guest.port.keep_ledger(memory.clone());
    let sent = receiver.send_up_to(0, MB);
    receiver.run_to_rest();
    assert_eq!((receiver.nxt, memory.promises().len()), (sent, 0));
}

#[test]
fn an_orderly_end_resets_both_ends() {
    let mut receiver = Receiver::buffering();
    receiver.send_up_to(0, MB);
    let mut out = Out::default();
    receiver.guest.port.end(receiver.guest.now_ns, &mut out);
    assert_eq!((out.to_guest.len(), out.to_fabric.len()), (1, 1));
}

#[test]
fn without_a_ledger_nothing_is_stored() {
    let mut receiver = Receiver::buffering();
    receiver.guest.port.promise_nothing("a test");
    let sent = receiver.send_up_to(0, MB);
    receiver.wait_ms(50);
    assert_eq!(sent, FIRST_WINDOW);
    assert_eq!(receiver.acked, FIRST_WINDOW);
    let memory = Arc::new(Memory::default());
    receiver.guest.port.keep_ledger(memory);
    receiver.run_to_rest();
    assert_eq!(receiver.send_up_to(sent, MB), MB);
}

#[test]
fn stored_data_moves_with_the_guest() {
    for act in [sys::ACT_WINDOW, sys::ACT_HOLD, sys::ACT_SPLIT] {
        let params = Params::with(|params| {
            (params.receive, params.act) = (sys::RECEIVE_BUFFER as u8, act as u8);
        });
        let mut receiver = Receiver::new(Guest::with(params));
        let sent = receiver.send_up_to(0, MB);
        receiver.run();
        let before_bytes = receiver.guest.port.promised_bytes();
        let (_, state) = receiver.guest.port.hand_over("a test", std::iter::empty());
        receiver.guest.port = Port::new(params, 16);
        let memory = Arc::new(Memory::default());
        receiver.guest.port.keep_ledger(memory.clone());
        receiver.guest.port.take_over(receiver.guest.now_ns, &state).expect("a state");
        assert_eq!(receiver.guest.port.promised_bytes(), before_bytes);
        receiver.go_on();
        assert_eq!(memory.promises().len(), 1);
        let sent = receiver.send_up_to(sent, 2 * MB);
        receiver.wait_ms(50);
        receiver.run_to_rest();
        assert_eq!((receiver.nxt, receiver.duplicates), (sent, 0));
        assert_eq!((sent, memory.promises().len()), (2 * MB, 0));
    }
}

#[test]
fn another_treatment_delivers_what_was_stored() {
    for receive in [sys::RECEIVE_GUEST, sys::RECEIVE_RING] {
        let mut receiver = Receiver::buffering();
        let sent = receiver.send_up_to(0, MB);
        let params = Params::with(|params| params.receive = receive as u8);
        receiver.guest.port.set_params(params);
        receiver.may_shrink = true;
        receiver.wait_ms(50);
        receiver.run_to_rest();
        assert_eq!((receiver.nxt, receiver.duplicates), (sent, 0));
        // The guest's own window is the limit again.
        receiver.data(sent, SEG_BYTES);
        receiver.run_to_rest();
        assert_eq!((receiver.nxt, receiver.acked), (sent + SEG_BYTES, sent + SEG_BYTES));
    }
}

/// A connection that nobody reads leaves the others a part of the buffer.
#[test]
fn connections_share_the_buffer() {
    let (mut guest, mut sent) = (Guest::with(buffering()), Vec::new());
    for port in 0..12 {
        guest.at_peer(40_100 + port);
        let mut one = Receiver::new(guest);
        sent.push(one.send_up_to(0, 10 * MB));
        guest = one.guest;
    }
    assert!(guest.port.promised_bytes() <= 16 << 20);
    assert!(sent.iter().all(|bytes| *bytes > FIRST_WINDOW), "{sent:?}");
}

/// Loss, reordering and duplicates of the fabric, turns of the guest, windows and rings.
#[test]
fn every_byte_arrives_whatever_happens() {
    let mut stored = 0;
    for seed in 0..120 {
        let mut rng = Rng::new(seed);
        let stamps = rng.chance(500).then_some((1, 1));
        let scale = rng.pick(&[0, 3, 7, 11]);
        let guest = Guest { stamps, scale, sack: rng.chance(700), ..Guest::with(buffering()) };
        let mut receiver = Receiver::new(guest);
        receiver.ring_segs = rng.pick(&[3, 12, 64, 256]);
        receiver.space_bytes = rng.pick(&[2_000, 20_000, FIRST_WINDOW]).max(4 << scale);
        receiver.tell_room();
        let end = rng.range(1, 400_000) as u32;
        let (mut next, mut overtaken) = (0, Vec::new());
        let mut rounds = 0;
        while !(receiver.fin && receiver.guest.port.promised_bytes() == 0) {
            rounds += 1;
            assert!(
                rounds < 20_000,
                "{seed}: {} of {end}, {} given, {} acked, {} complete, {} told, {} paws, fin {}, \
                 {} in the ring, scale {scale}, stamps {stamps:?}, edge {}",
                receiver.nxt,
                receiver.given,
                receiver.acked,
                receiver.complete,
                receiver.told,
                receiver.paws,
                receiver.fin,
                receiver.ring.len(),
                receiver.edge,
            );
            receiver.guest.stamps = stamps.map(|_| (rounds, rounds));
            for _ in 0..rng.range(0, 30) {
                if next >= end || next >= receiver.told {
                    break;
                }
                let bytes = rng.pick(&[SEG_BYTES, SEG_BYTES, SEG_BYTES, 1, 700]);
                let bytes = bytes.min(end - next).min(receiver.told - next);
                match rng.range(0, 20) {
                    0 => {}
                    1 => overtaken.push((next, bytes)),
                    2 => {
                        receiver.data(next, bytes);
                        receiver.data(next, bytes);
                    }
                    _ => receiver.data(next, bytes),
                }
                next += bytes;
            }
            for (offset, bytes) in overtaken.drain(..) {
                receiver.data(offset, bytes);
            }
            stored += u32::from(receiver.acked > receiver.given);
            if receiver.complete == end {
                let end = fin(&mut receiver, end);
                receiver.arrive(&end);
            }
            receiver.wait_ms(rng.range(0, 60));
            if rng.chance(200) {
                receiver.application_reads = rng.chance(800) || rounds > 5_000;
                receiver.run();
            }
            // A timeout of the peer.
            if rng.chance(100) {
                next = receiver.acked.min(end);
            }
        }
        assert_eq!((receiver.nxt, receiver.acked, receiver.paws), (end, end + 1, 0), "{seed}");
    }
    assert!(stored > 1_000, "{stored}");
}
