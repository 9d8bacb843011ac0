//! Parsing of frames, as the datapath does it (`datapath/tcp_header.h`, `options.h` and
//! `holds_tcp.h`), and the options that both shells append (`our_options.h`).

use crate::{Segment, native, sys};

/// What user space keeps of a TCP header, besides the segment. Offsets are from the header's start;
/// 0: not present.
pub type TcpLayout = sys::vcc_tcp_layout;

const HELLO_BYTES: usize = sys::OPT_HELLO_BYTES as usize;
const PACK_BYTES: usize = sys::OPT_PACK_BYTES as usize;
const FACK_BYTES: usize = sys::OPT_FACK_BYTES as usize;

/// Parses a TCP segment with its payload. Writes all of `segment` but what IP determines.
///
/// # Errors
/// `enum vcc_count`: why the segment is not translated.
#[inline]
pub fn parse_tcp(
    tcp: &[u8],
    gso_size: u16,
    segment: &mut Segment,
    layout: &mut TcpLayout,
) -> Result<(), sys::vcc_count> {
    let (bytes, gso_size) = (tcp.len() as u32, gso_size.into());
    // SAFETY: the header is that many readable bytes; the others are live values of the C types.
    let result = unsafe { native::parse_tcp(tcp.as_ptr(), bytes, gso_size, segment, layout) };
    parsed(result)
}

/// Parses the options of a segment, whose flags and acknowledgement are known.
///
/// # Errors
/// They are longer than a TCP header's.
pub fn parse_tcp_options(
    options: &[u8],
    segment: &mut Segment,
    layout: &mut TcpLayout,
) -> Result<(), sys::vcc_count> {
    let bytes = options.len() as u32;
    // SAFETY: the options are that many readable bytes; the others are live values of the C types.
    parsed(unsafe { native::parse_options(options.as_ptr(), bytes, segment, layout) })
}

fn parsed(result: sys::vcc_count) -> Result<(), sys::vcc_count> {
    // PARSED of tcp_header.h.
    if result == sys::COUNT_MAX { Ok(()) } else { Err(result) }
}

/// May the frame hold TCP, or a fragment of it, that cannot be parsed?
pub fn holds_tcp(frame: &[u8]) -> bool {
    // SAFETY: the frame is that many readable bytes.
    unsafe { native::holds_tcp(frame.as_ptr(), frame.len() as u64) }
}

/// A mask of `length` bytes of the options from `at`, one bit per byte.
pub fn option_bytes(at: usize, length: usize) -> u64 {
    // SAFETY: it takes numbers and returns a number.
    unsafe { native::option_bytes(at as u32, length as u32) }
}

/// Hello with one of `enum vcc_hello`.
pub fn hello_option(hello: u8) -> [u8; HELLO_BYTES] {
    // SAFETY: it takes a number and returns a value.
    bytes(unsafe { native::option_hello(hello) })
}

pub fn pack_option(feedback: &sys::vcc_feedback) -> [u8; PACK_BYTES] {
    // SAFETY: it points to a live value of the C type for the length of the call.
    bytes(unsafe { native::option_pack(feedback) })
}

pub fn fack_option(feedback: &sys::vcc_feedback) -> [u8; FACK_BYTES] {
    // SAFETY: it points to a live value of the C type for the length of the call.
    bytes(unsafe { native::option_fack(feedback) })
}

/// The first bytes of an option, whose words are in network byte order.
fn bytes<const N: usize>(option: sys::our_option) -> [u8; N] {
    let mut bytes = [0; N];
    for (place, word) in bytes.chunks_exact_mut(2).zip(option.words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}
