//! TCP options in their usual encoding.

use crate::wire::*;

pub fn mss(bytes: u16) -> Vec<u8> {
    [&[OPTION_MSS, 4], &bytes.to_be_bytes()[..]].concat()
}

pub fn wscale(scale: u8) -> Vec<u8> {
    vec![OPTION_WSCALE, 3, scale]
}

pub fn sack_permitted() -> Vec<u8> {
    vec![OPTION_SACK_PERMITTED, 2]
}

pub fn timestamps(value: u32, echo: u32) -> Vec<u8> {
    [&[OPTION_TIMESTAMPS, 10], &value.to_be_bytes()[..], &echo.to_be_bytes()].concat()
}

/// Blocks by their edges (RFC 2018, 3).
pub fn sack(blocks: &[(u32, u32)]) -> Vec<u8> {
    let mut option = vec![OPTION_SACK, (2 + 8 * blocks.len()) as u8];
    for (left, right) in blocks {
        option.extend(left.to_be_bytes());
        option.extend(right.to_be_bytes());
    }
    option
}

/// HELLO_OFFER or HELLO_ACCEPT.
pub fn hello(what: u8) -> Vec<u8> {
    [&[OPTION_EXPERIMENT, 8], &EXPERIMENT_NAME[..], &[VERSION, what, 0, 0]].concat()
}

pub fn pack(ect0_bytes: u32, ce_bytes: u32) -> Vec<u8> {
    [&[OPTION_PACK, 8], &counters(ect0_bytes, ce_bytes)[..]].concat()
}

/// An AccECN option of up to three counters (RFC 9768, 3.2.3).
pub fn accecn(kind: u8, counters: &[u32]) -> Vec<u8> {
    let fields = counters.iter().flat_map(|bytes| bytes.to_be_bytes()[1..].to_vec());
    [kind, 2 + 3 * counters.len() as u8].into_iter().chain(fields).collect()
}

pub fn fack(ect0_bytes: u32, ce_bytes: u32) -> Vec<u8> {
    let head = [&[OPTION_EXPERIMENT, 12], &EXPERIMENT_NAME[..], &[VERSION, FACK]].concat();
    [head, counters(ect0_bytes, ce_bytes)].concat()
}

fn counters(ect0_bytes: u32, ce_bytes: u32) -> Vec<u8> {
    [ect0_bytes, ce_bytes].iter().flat_map(|bytes| bytes.to_be_bytes()[1..].to_vec()).collect()
}

pub fn nops(count: usize) -> Vec<u8> {
    vec![OPTION_NOP; count]
}

/// The options in this order, padded with NOPs to a multiple of four bytes.
pub fn join(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut all = parts.concat();
    all.resize(all.len().next_multiple_of(4), OPTION_NOP);
    all
}
