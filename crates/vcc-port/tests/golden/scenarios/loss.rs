//! Lost, reordered and retransmitted segments.

use vcc_frames::options;

use super::*;
use crate::conversation::{Conversation, MSS_BYTES, Offers};
use crate::direction::Direction::{FromGuest, ToGuest};

/// RFC 6582: three duplicates, a partial ACK, the end of the recovery.
pub(super) fn lost_segment_without_sack(c: &mut Conversation) {
    c.connection.offers = Offers { sack: false, ..Offers::default() };
    c.open();
    for _ in 0..10 {
        c.data(FromGuest, MSS_BYTES);
    }
    c.ack_but(9 * MSS, |_| {});
    for duplicates in 1..=5 {
        c.ack_but(9 * MSS, |_| {});
        if duplicates == 3 {
            c.again(9 * MSS, MSS_BYTES);
        }
    }
    c.ack_but(4 * MSS, |_| {});
    c.again(4 * MSS, MSS_BYTES);
    c.data(FromGuest, MSS_BYTES);
    c.ack(ToGuest);
    c.data(FromGuest, MSS_BYTES);
    c.ack(ToGuest);
}

pub(super) fn lost_segment_with_sack(c: &mut Conversation) {
    c.open();
    for _ in 0..8 {
        c.data(FromGuest, MSS_BYTES);
    }
    let lost = c.connection.guest_next.wrapping_sub(7 * MSS);
    for segs in 1..=5 {
        // The window moves with each: by its blocks it is a duplicate all the same.
        c.ack_but(7 * MSS, |p| {
            p.window -= segs as u16;
            let after_lost = lost.wrapping_add(MSS);
            let block = (after_lost, after_lost.wrapping_add(segs * MSS));
            let sack = [options::nops(2), options::sack(&[block])].concat();
            p.options = [p.options.clone(), sack].concat();
        });
    }
    c.again(7 * MSS, MSS_BYTES);
    c.ack_but(MSS, |_| {});
    c.ack(ToGuest);
    c.data(FromGuest, MSS_BYTES);
    c.ack(ToGuest);
}

/// RFC 2883: below the acknowledgement (4.1), then within the second block (4.2), both sent again
/// for nothing; and blocks that only look alike.
pub(super) fn segments_that_overtook_each_other(c: &mut Conversation) {
    c.open();
    for _ in 0..8 {
        c.data(FromGuest, MSS_BYTES);
    }
    c.again(8 * MSS, MSS_BYTES);
    c.again(4 * MSS, MSS_BYTES);
    let end = c.connection.guest_next;
    let at = |back_segs: u32| end.wrapping_sub(back_segs * MSS);
    let blocks: [&[(u32, u32)]; 6] = [
        &[(at(3), at(2))],
        &[(at(4), at(3)), (at(2), at(1))],
        &[(at(7), at(8))],
        &[(at(8), at(7))],
        &[(at(4), at(3)), (at(4), at(2))],
        &[(at(8), at(7)), (at(4), at(2))],
    ];
    for blocks in blocks {
        c.ack_but(4 * MSS, |p| {
            p.options = [&p.options[..], &options::nops(2), &options::sack(blocks)].concat();
        });
    }
    c.ack(ToGuest);
    c.data(FromGuest, MSS_BYTES);
    c.ack(ToGuest);
}

/// The tail (a probe, perhaps), the middle, the first, what was acknowledged, a keep-alive.
pub(super) fn retransmissions(c: &mut Conversation) {
    c.open();
    for _ in 0..6 {
        c.data(FromGuest, MSS_BYTES);
    }
    c.again(MSS, MSS_BYTES);
    c.again(3 * MSS, MSS_BYTES);
    c.again(6 * MSS, MSS_BYTES);
    c.ack(ToGuest);
    c.again(2 * MSS, MSS_BYTES);
    c.again(1, 0);
    c.ack(ToGuest);
    c.again(1, 1);
    c.ack(ToGuest);
    // Half of it old, half new.
    c.again(500, 1000);
    c.ack(ToGuest);
}
