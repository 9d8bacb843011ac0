//! SACK blocks of a guest that has not read all of its ring yet (RFC 2018).

use vcc_engine::sys;

use crate::frame::{Direction, Frame};
use crate::options::{KIND_NOP, KIND_SACK};
use crate::parse::{Parsed, parse};
use crate::rewrite::rewrite_header;
use crate::wire::*;

const BLOCK_BYTES: usize = 8;
const KIND_AND_LENGTH_BYTES: usize = 2;

/// The blocks of a guest's segment: left and right edge.
pub(crate) fn blocks(frame: &Frame, parsed: &Parsed) -> impl Iterator<Item = (u32, u32)> {
    let option = located(frame, parsed)
        .map_or(&[][..], |(at, length)| &frame.bytes[at + KIND_AND_LENGTH_BYTES..at + length]);
    option.chunks_exact(BLOCK_BYTES).map(|block| (read_u32(block, 0), read_u32(block, 4)))
}

/// Removes the blocks that begin below `promised`, but for a DSACK block below the guest's own
/// acknowledgement: below a raised acknowledgement they would say that data has come twice (RFC
/// 2883, 4).
pub(crate) fn without_promised(frame: &mut Frame, parsed: Parsed, promised: u32) -> Parsed {
    let Some((at, length)) = located(frame, &parsed) else { return parsed };
    let keeps = |&(number, (left, right)): &(usize, (u32, u32))| {
        let is_duplicate = number == 0 && !is_after(right, parsed.segment.ack);
        is_duplicate || is_after(left, promised)
    };
    let kept = blocks(frame, &parsed).enumerate().filter(keeps).map(|(_, block)| block);
    let kept: Vec<(u32, u32)> = kept.collect();
    let bytes = KIND_AND_LENGTH_BYTES + kept.len() * BLOCK_BYTES;
    if bytes == length {
        return parsed;
    }
    rewrite_header(frame, &parsed, |frame| {
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
    again
}

/// Offset of the option from the frame's start, and its length.
fn located(frame: &Frame, parsed: &Parsed) -> Option<(usize, usize)> {
    let options_at = parsed.ip.tcp_at + TCP_BYTES;
    let at = options_at + sack_at(&frame.bytes[options_at..parsed.header_end()])?;
    Some((at, frame.bytes[at + 1].into()))
}

fn is_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

/// The offset of the last SACK option, which is the one that counts.
fn sack_at(options: &[u8]) -> Option<usize> {
    let (mut at, mut found) = (0, None);
    while let Some(&kind) = options.get(at) {
        match (kind, options.get(at + 1)) {
            (0, _) => break,
            (KIND_NOP, _) => at += 1,
            (_, Some(&length)) if length >= 2 && at + usize::from(length) <= options.len() => {
                if kind == KIND_SACK {
                    found = Some(at);
                }
                at += usize::from(length);
            }
            _ => break,
        }
    }
    found
}
