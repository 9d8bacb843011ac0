//! SACK blocks of a guest that has not read all of its ring yet (RFC 2018).

use vcc_engine::sys;

use crate::frame::{Direction, Frame};
use crate::options::{KIND_NOP, KIND_SACK, sack_blocks};
use crate::parse::{Parsed, parse};
use crate::rewrite::rewrite_header;
use vcc_net::seq::after;
use vcc_net::wire::*;

const BLOCK_BYTES: usize = 8;
const KIND_AND_LENGTH_BYTES: usize = 2;

/// The blocks of a guest's segment: left and right edge.
pub(crate) fn blocks(frame: &Frame, parsed: &Parsed) -> impl Iterator<Item = (u32, u32)> {
    let option = parsed.sack_at().map_or(&[][..], |(at, length)| &frame.bytes[at..at + length]);
    sack_blocks(option)
}

/// Removes the blocks that begin below `promised`, but for a DSACK block below the guest's own
/// acknowledgement: below a raised acknowledgement they would say that data has come twice (RFC
/// 2883, 4).
pub(crate) fn strip_promised(frame: &mut Frame, parsed: &mut Parsed, promised: u32) {
    let Some((at, length)) = parsed.sack_at() else { return };
    let keeps = |&(number, (left, right)): &(usize, (u32, u32))| {
        let is_duplicate = number == 0 && !after(right, parsed.segment.ack);
        is_duplicate || after(left, promised)
    };
    let kept = blocks(frame, parsed).enumerate().filter(keeps).map(|(_, block)| block);
    let kept: Vec<(u32, u32)> = kept.collect();
    let bytes = KIND_AND_LENGTH_BYTES + kept.len() * BLOCK_BYTES;
    if bytes == length {
        return;
    }
    rewrite_header(frame, parsed, |frame| {
        let option = &mut frame.bytes[at..at + length];
        option.fill(KIND_NOP);
        if !kept.is_empty() {
            (option[0], option[1]) = (KIND_SACK, bytes as u8);
        }
        for (number, (left, right)) in kept.iter().enumerate() {
            let place = KIND_AND_LENGTH_BYTES + number * BLOCK_BYTES;
            write_u32(option, place, *left);
            write_u32(option, place + 4, *right);
        }
        parsed.header_bytes
    });
    let now_us = parsed.segment.now_us;
    let mut again = parse(frame, Direction::FromGuest).expect("a segment without some blocks");
    again.segment.now_us = now_us;
    debug_assert!(kept.is_empty() != (u32::from(again.segment.options) & sys::OPT_SACK != 0));
    *parsed = again;
}
