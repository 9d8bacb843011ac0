//! Applies an action to the frame.

use vcc_engine::{Action, option_bytes, sys};

use crate::checksum;
use crate::feedback_options::{self, APPENDED_BYTES};
use crate::frame::{Direction, Frame};
use crate::options::KIND_NOP;
use crate::parse::Parsed;
use vcc_net::wire::*;

const OPTIONS_OF_OURS: u32 = sys::OPT_HELLO
    | sys::OPT_PACK
    | sys::OPT_FACK
    | sys::OPT_OURS_BAD
    | sys::OPT_ACCECN
    | sys::OPT_ACCECN_CE;

/// Rewrites the parsed frame by the action. A wrong checksum stays wrong.
pub(crate) fn rewrite(frame: &mut Frame, direction: Direction, parsed: &Parsed, action: &Action) {
    let segment = &parsed.segment;
    if changes_options(parsed, action) {
        rewrite_with_options(frame, direction, parsed, action);
        return;
    }
    if action.flags != segment.flags || action.window != segment.window {
        rewrite_flags_window(frame, parsed, action);
    }
    if action.ip_ecn != segment.ip_ecn {
        parsed.ip.rewrite(&mut frame.bytes, action.ip_ecn, parsed.ip.length);
    }
}

pub(crate) fn changes_options(parsed: &Parsed, action: &Action) -> bool {
    action.strip != 0
        || appended(action).is_some()
        || new_mss(parsed, action).is_some()
        || new_wscale(parsed, action).is_some()
}

/// The option that the action appends.
fn appended(action: &Action) -> Option<[u8; APPENDED_BYTES]> {
    match u32::from(action.emit) {
        sys::EMIT_HELLO => Some(feedback_options::hello(action.hello)),
        sys::EMIT_PACK => Some(feedback_options::pack(&action.feedback)),
        _ => None,
    }
}

/// The MSS option to change, as an offset from the start of the TCP header.
fn new_mss(parsed: &Parsed, action: &Action) -> Option<usize> {
    let at = parsed.places.mss_at?;
    (action.mss != parsed.segment.mss).then_some(at.get().into())
}

fn new_wscale(parsed: &Parsed, action: &Action) -> Option<usize> {
    let at = parsed.places.wscale_at?;
    (action.wscale != parsed.segment.wscale).then_some(at.get().into())
}

fn rewrite_with_options(frame: &mut Frame, direction: Direction, parsed: &Parsed, action: &Action) {
    let tcp_at = parsed.ip.tcp_at;
    let header_bytes = rewrite_header(frame, parsed, |frame| {
        let header_bytes = change_options(frame, direction, parsed, action);
        if let Some(at) = new_mss(parsed, action) {
            write_u16(&mut frame.bytes, tcp_at + at, action.mss);
        }
        if let Some(at) = new_wscale(parsed, action) {
            frame.bytes[tcp_at + at] = action.wscale;
        }
        set_flags_window(frame, parsed, header_bytes, action);
        header_bytes
    });
    let (before_bytes, now_bytes) = (parsed.header_bytes as u16, header_bytes as u16);
    let header = &mut frame.bytes[tcp_at..tcp_at + header_bytes];
    checksum::tcp_length_changed(frame.checksum, header, before_bytes.into(), now_bytes.into());
    // Modular: the length 0 of a BIG TCP super-segment must not underflow when its option bytes are
    // trimmed.
    let length = parsed.ip.length.wrapping_add(now_bytes).wrapping_sub(before_bytes);
    parsed.ip.rewrite(&mut frame.bytes, action.ip_ecn, length);
}

/// Runs `change` on the frame and updates the checksum for its changes of the TCP header. Both
/// return the header's new size.
pub(crate) fn rewrite_header(
    frame: &mut Frame,
    parsed: &Parsed,
    change: impl FnOnce(&mut Frame) -> usize,
) -> usize {
    if !frame.checksum.is_complete() {
        // It does not cover the header.
        return change(frame);
    }
    let tcp_at = parsed.ip.tcp_at;
    let mut before = [0; TCP_BYTES + TCP_OPTIONS_MAX_BYTES];
    let before = &mut before[..parsed.header_bytes];
    before.copy_from_slice(&frame.bytes[tcp_at..parsed.header_end()]);
    let header_bytes = change(frame);
    let now = &mut frame.bytes[tcp_at..tcp_at + header_bytes];
    checksum::tcp_header_changed(frame.checksum, before, now);
    header_bytes
}

fn rewrite_flags_window(frame: &mut Frame, parsed: &Parsed, action: &Action) {
    let (before, now) = set_flags_window(frame, parsed, parsed.header_bytes, action);
    if frame.checksum.is_complete() {
        let tcp = &mut frame.bytes[parsed.ip.tcp_at..];
        let check = checksum::word_updated(read_u16(tcp, TCP_CHECK_AT), before, now);
        write_u16(tcp, TCP_CHECK_AT, check);
    }
}

/// The two are neighbours. Returns what they were and are.
fn set_flags_window(
    frame: &mut Frame,
    parsed: &Parsed,
    header_bytes: usize,
    action: &Action,
) -> (u32, u32) {
    let tcp = &mut frame.bytes[parsed.ip.tcp_at..];
    let before = read_u32(tcp, TCP_OFFSET_FLAGS_AT);
    let reserved = (before >> 16) as u16 & TCP_RESERVED_MASK;
    let offset_flags = tcp_offset_flags(header_bytes, reserved | action.flags);
    let now = u32::from(offset_flags) << 16 | u32::from(action.window);
    write_u32(tcp, TCP_OFFSET_FLAGS_AT, now);
    (before, now)
}

/// Removes and appends our options. Returns the new size of the TCP header.
fn change_options(
    frame: &mut Frame,
    direction: Direction,
    parsed: &Parsed,
    action: &Action,
) -> usize {
    let cuts = action.strip != 0 && direction == Direction::ToGuest && is_cuttable(parsed);
    if cuts {
        debug_assert!(appended(action).is_none(), "nothing is cut off and added at once");
        let header_bytes = parsed.header_bytes - APPENDED_BYTES;
        frame.resize(parsed.ip.tcp_at + header_bytes);
        return header_bytes;
    }
    let mut blank = if action.strip != 0 { parsed.places.ours } else { 0 };
    let Some(option) = appended(action) else {
        blank_options(frame, parsed, blank);
        return parsed.header_bytes;
    };
    debug_assert!(parsed.segment.payload_bytes == 0, "an option cannot be appended to payload");
    // Receivers do not read options after KIND_END, which some guests send.
    if let Some(end_at) = parsed.places.end_at.map(|at| usize::from(at.get())) {
        blank |= option_bytes(end_at - TCP_BYTES, parsed.header_bytes - end_at);
    }
    blank_options(frame, parsed, blank);
    // The option replaces Ethernet's padding.
    frame.resize(parsed.header_end() + APPENDED_BYTES);
    frame.bytes[parsed.header_end()..].copy_from_slice(&option);
    parsed.header_bytes + APPENDED_BYTES
}

/// Is our only option at the end of the segment, so that the frame can be trimmed?
fn is_cuttable(parsed: &Parsed) -> bool {
    let options_bytes = parsed.header_bytes - TCP_BYTES;
    let ours = u32::from(parsed.segment.options) & OPTIONS_OF_OURS;
    parsed.segment.payload_bytes == 0
        && (ours == sys::OPT_PACK || ours == sys::OPT_HELLO)
        && parsed.places.ours == option_bytes(options_bytes - APPENDED_BYTES, APPENDED_BYTES)
}

/// Replaces the masked bytes of the options by NOPs.
fn blank_options(frame: &mut Frame, parsed: &Parsed, blank: u64) {
    let options = &mut frame.bytes[parsed.ip.tcp_at + TCP_BYTES..parsed.header_end()];
    for (at, byte) in options.iter_mut().enumerate() {
        if blank >> at & 1 != 0 {
            *byte = KIND_NOP;
        }
    }
}

#[cfg(test)]
mod tests {
    use vcc_engine::Segment;
    use vcc_frames::Packet;

    use super::*;
    use crate::parse::parse;
    use crate::testing::{Talk, framed, is_right};

    const COUNTED: sys::vcc_feedback = sys::vcc_feedback { ect0_bytes: 1000, ce_bytes: 70_000 };

    /// An action that changes nothing.
    fn keep(segment: &Segment) -> Action {
        Action {
            flags: segment.flags,
            window: segment.window,
            mss: segment.mss,
            wscale: segment.wscale,
            ip_ecn: segment.ip_ecn,
            ..Action::default()
        }
    }

    /// Rewrites a pure ACK with these options. Returns the frame and its new options.
    fn rewritten(
        from_guest: bool,
        options: &[u8],
        edit: impl FnOnce(&mut Action),
    ) -> (Frame, Vec<u8>) {
        let segment = Packet { options: options.to_vec(), ..Talk::v4().segment(from_guest) };
        let mut frame = framed(&segment);
        frame.bytes.extend([0xa5; 4]);
        let direction = if from_guest { Direction::FromGuest } else { Direction::ToGuest };
        let parsed = parse(&frame, direction).expect("TCP");
        let mut action = keep(&parsed.segment);
        edit(&mut action);
        rewrite(&mut frame, direction, &parsed, &action);
        assert!(is_right(&frame));
        let parsed = parse(&frame, direction).expect("still TCP");
        let options = frame.bytes[parsed.ip.tcp_at + TCP_BYTES..parsed.header_end()].to_vec();
        (frame, options)
    }

    fn strip(action: &mut Action) {
        action.strip = 1;
    }

    fn report(action: &mut Action) {
        (action.emit, action.feedback) = (sys::EMIT_PACK as u8, COUNTED);
    }

    #[test]
    fn unchanged_fields_are_not_written() {
        let (frame, _) = rewritten(true, &[], |_| {});
        assert!(frame.bytes.ends_with(&[0xa5; 4]), "padding stays");
        // Not even +0 is normalised to -0.
        let mut zero = framed(&Talk::v4().segment(true));
        write_u16(&mut zero.bytes, 34 + TCP_CHECK_AT, 0xffff);
        let parsed = parse(&zero, Direction::FromGuest).expect("TCP");
        let mut frame = zero.clone();
        rewrite(&mut frame, Direction::FromGuest, &parsed, &keep(&parsed.segment));
        assert_eq!(frame, zero);
    }

    #[test]
    fn flags_and_window_change_and_reserved_bits_stay() {
        let mut frame = framed(&Talk::v4().segment(true));
        frame.bytes[34 + TCP_OFFSET_FLAGS_AT] |= 0x0e;
        let parsed = parse(&frame, Direction::FromGuest).expect("TCP");
        let mut action = keep(&parsed.segment);
        (action.flags, action.window) = (0x1d0, 5);
        rewrite(&mut frame, Direction::FromGuest, &parsed, &action);
        assert_eq!(frame.bytes[46..50], [0x5f, 0xd0, 0, 5]);
    }

    #[test]
    fn a_report_replaces_the_padding() {
        let (frame, options) = rewritten(true, &[], report);
        assert_eq!(options, feedback_options::pack(&COUNTED));
        assert!(frame.bytes.ends_with(&options));
        let (_, options) = rewritten(true, &[2, 4, 5, 0xb4, 0, 9, 9, 9], report);
        let expected =
            [&[2, 4, 5, 0xb4, 1, 1, 1, 1][..], &feedback_options::pack(&COUNTED)].concat();
        assert_eq!(options, expected, "NOPs replace KIND_END");
    }

    /// A super-segment whose length changes becomes a single segment, like in the kernel.
    #[test]
    fn a_resized_frame_is_no_super_segment() {
        let mut frame = Frame { gso_size: 100, ..framed(&Talk::v4().segment(true)) };
        let parsed = parse(&frame, Direction::FromGuest).expect("TCP");
        let mut action = keep(&parsed.segment);
        action.window = 1;
        rewrite(&mut frame, Direction::FromGuest, &parsed, &action);
        assert_eq!(frame.gso_size, 100);
        report(&mut action);
        rewrite(&mut frame, Direction::FromGuest, &parsed, &action);
        assert_eq!(frame.gso_size, 0);
    }

    #[test]
    fn our_option_is_trimmed_at_the_end_and_blanked_elsewhere() {
        let pack = feedback_options::pack(&COUNTED);
        let last = [&[1, 1, 1, 1][..], &pack].concat();
        let (frame, options) = rewritten(false, &last, strip);
        assert_eq!((frame.bytes.len(), options), (58, vec![1; 4]));
        let (frame, options) = rewritten(true, &last, strip);
        assert_eq!((frame.bytes.len(), options), (70, vec![1; 12]), "from the guest");
        let first = [&pack[..], &[3, 3, 7, 1]].concat();
        let (_, options) = rewritten(false, &first, strip);
        assert_eq!(options, [1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 7, 1]);
        let two = [pack, pack].concat();
        assert_eq!(rewritten(false, &two, strip).1, [1; 16], "not one, but both");
        assert_eq!(rewritten(false, &feedback_options::fack(&COUNTED), strip).1, [1; 12]);
    }

    /// At any offset, also across words.
    #[test]
    fn values_of_syns_are_rewritten() {
        for nops in 0..4 {
            let syn = [vec![1; nops], vec![2, 4, 5, 0xb4, 3, 3, 7], vec![1; 5 - nops]].concat();
            let (_, options) = rewritten(false, &syn, |action| {
                (action.mss, action.wscale) = (0x1234, 5);
            });
            assert_eq!(options[nops..nops + 7], [2, 4, 0x12, 0x34, 3, 3, 5]);
        }
    }
}
