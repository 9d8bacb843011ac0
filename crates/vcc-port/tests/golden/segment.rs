//! Parses a frame into the engine's segment, and applies the engine's action to the frame.

use std::ops::Range;

use vcc_engine::{Action, Segment, sys};
use vcc_frames::wire::*;
use vcc_frames::{checksum, options};
use vcc_port::{Counter, counters};

use crate::direction::Direction::{self, ToGuest};
use crate::layout::{Layout, fill_checksums};

/// A parsed frame, for the native engine.
pub struct Parsed {
    pub at: Layout,
    pub segment: Segment,
    mss_value: Option<Range<usize>>,
    wscale_value: Option<usize>,
    /// The places of the options that are removed: those of vcc, and those of MPTCP in a SYN.
    ours: Vec<Range<usize>>,
    /// The place of an end-of-options byte.
    end: Option<usize>,
    /// An option has an invalid length (RFC 9293, 3.1).
    pub malformed: bool,
}

const OPTIONS_MAX_BYTES: usize = 40;
const OPT_OURS: u32 = sys::OPT_HELLO
    | sys::OPT_PACK
    | sys::OPT_FACK
    | sys::OPT_OURS_BAD
    | sys::OPT_ACCECN
    | sys::OPT_ACCECN_CE;

/// MD5 (RFC 2385) and TCP-AO (RFC 5925).
const SIGNATURES: [u8; 2] = [19, 29];

impl Parsed {
    pub fn parse(frame: &[u8], gso_size: u32) -> Result<Parsed, Counter> {
        let at = Layout::parse(frame, gso_size)?;
        let flags = at.flags(frame);
        if !plausible(flags) {
            return Err(counters::BAD_FLAGS);
        }
        let payload_bytes = (at.end - at.payload) as u32;
        let segment = Segment {
            seq: read_u32(frame, at.l4 + 4),
            ack: read_u32(frame, at.l4 + 8),
            payload_bytes,
            seg_bytes: if payload_bytes > gso_size { gso_size } else { 0 },
            window: at.window(frame),
            flags,
            ip_ecn: at.ecn(frame),
            ..Segment::default()
        };
        let mut parsed = Parsed {
            at,
            segment,
            mss_value: None,
            wscale_value: None,
            ours: Vec::new(),
            end: None,
            malformed: false,
        };
        parsed.take_options(frame);
        // Options are added at the end of the frame, so all others must be well-formed.
        if payload_bytes == 0 && !parsed.malformed {
            let options_bytes = parsed.at.payload - parsed.at.l4 - TCP_BYTES;
            parsed.segment.option_room_bytes = (OPTIONS_MAX_BYTES - options_bytes) as u8;
        }
        Ok(parsed)
    }

    pub fn header_bytes(&self) -> usize {
        self.at.payload - self.at.l4
    }

    pub fn is_signed(&self) -> bool {
        u32::from(self.segment.options) & sys::OPT_SIGNED != 0
    }

    /// Reads options up to the first one with an invalid length.
    fn take_options(&mut self, frame: &[u8]) {
        let mut here = self.at.l4 + TCP_BYTES;
        while here < self.at.payload {
            let rest = &frame[here..self.at.payload];
            let length = match rest[0] {
                OPTION_END => {
                    self.end = Some(here);
                    break;
                }
                OPTION_NOP => 1,
                _ => rest.get(1).map_or(0, |length| usize::from(*length)),
            };
            if rest[0] != OPTION_NOP {
                let Some(option) = rest.get(..length).filter(|option| option.len() >= 2) else {
                    self.malformed = true;
                    break;
                };
                self.take_option(option, here);
            }
            here += length;
        }
    }

    fn take_option(&mut self, option: &[u8], here: usize) {
        let known = match (option[0], option.len()) {
            (OPTION_MSS, 4) if option[2..] != [0, 0] => {
                self.segment.mss = read_u16(option, 2);
                self.mss_value = Some(here + 2..here + 4);
                sys::OPT_MSS
            }
            (OPTION_WSCALE, 3) => {
                self.segment.wscale = option[2];
                self.wscale_value = Some(here + 2);
                sys::OPT_WSCALE
            }
            (OPTION_SACK_PERMITTED, 2) => sys::OPT_SACK_PERMITTED,
            (OPTION_TIMESTAMPS, 10) => {
                self.segment.tsval = read_u32(option, 2);
                self.segment.tsecr = read_u32(option, 6);
                sys::OPT_TIMESTAMPS
            }
            (OPTION_SACK, 10 | 18 | 26 | 34) => {
                self.segment.dsack_bytes = self.dsack_bytes(&option[2..]);
                let is_dsack = self.segment.dsack_bytes > 0;
                self.segment.dsack_seq = if is_dsack { read_u32(option, 2) } else { 0 };
                sys::OPT_SACK
            }
            (kind, _) if SIGNATURES.contains(&kind) => sys::OPT_SIGNED,
            (OPTION_MPTCP, _) if self.segment.flags & SYN != 0 => {
                self.ours.push(here..here + option.len());
                sys::OPT_MPTCP
            }
            (OPTION_PACK | OPTION_ACCECN1, _) => self.take_ours(option, here),
            (OPTION_EXPERIMENT, 4..) if option[2..4] == EXPERIMENT_NAME => {
                self.take_ours(option, here)
            }
            _ => 0,
        };
        self.segment.options |= known as u16;
    }

    /// A D-SACK block is below the acknowledgement or within the second block (RFC 2883, 4).
    fn dsack_bytes(&self, blocks: &[u8]) -> u32 {
        let not_after = |a: u32, b: u32| b.wrapping_sub(a) as i32 >= 0;
        let mut blocks = blocks.chunks_exact(8).map(|it| [read_u32(it, 0), read_u32(it, 4)]);
        let [left, right] = blocks.next().expect("a block");
        let is_inside = blocks
            .next()
            .is_some_and(|other| not_after(other[0], left) && not_after(right, other[1]));
        let is_dsack = not_after(right, self.segment.ack) || is_inside;
        if is_dsack && !not_after(right, left) { right.wrapping_sub(left) } else { 0 }
    }

    /// Parses a feedback option; the last of several counts.
    fn take_ours(&mut self, option: &[u8], here: usize) -> u32 {
        self.ours.push(here..here + option.len());
        let mut counters = |at: usize| {
            let [ect0_bytes, ce_bytes] = [at, at + 3].map(|at| read_u24(option, at));
            self.segment.feedback = sys::vcc_feedback { ect0_bytes, ce_bytes };
        };
        match (option[0], option.len(), option.get(4..6)) {
            (OPTION_PACK, 8, _) => {
                counters(2);
                sys::OPT_PACK
            }
            (OPTION_PACK | OPTION_ACCECN1, 8.., _) => {
                counters(2);
                sys::OPT_ACCECN | sys::OPT_ACCECN_CE
            }
            (OPTION_PACK | OPTION_ACCECN1, ..8, _) => sys::OPT_ACCECN,
            (OPTION_EXPERIMENT, 12, Some(&[VERSION, FACK])) => {
                counters(6);
                sys::OPT_FACK
            }
            (OPTION_EXPERIMENT, 8, Some(&[VERSION, what @ (HELLO_OFFER | HELLO_ACCEPT)]))
                if option[6..] == [0, 0] =>
            {
                self.segment.hello = what;
                sys::OPT_HELLO
            }
            _ => sys::OPT_OURS_BAD,
        }
    }

    /// The expected frame, with checksums from scratch.
    pub fn apply(&self, from: Direction, action: &Action, frame: &[u8]) -> Vec<u8> {
        let mut out = frame.to_vec();
        self.at.set_ecn(&mut out, action.ip_ecn);
        self.at.set_flags(&mut out, action.flags);
        self.at.set_window(&mut out, action.window);
        if let Some(value) = &self.mss_value {
            write_u16(&mut out, value.start, action.mss);
        }
        if let Some(value) = self.wscale_value {
            out[value] = action.wscale;
        }
        if action.strip != 0 {
            self.strip(from, &mut out);
        }
        match u32::from(action.emit) {
            sys::EMIT_HELLO => self.append(&mut out, &options::hello(action.hello)),
            sys::EMIT_PACK => {
                let sys::vcc_feedback { ect0_bytes, ce_bytes } = action.feedback;
                self.append(&mut out, &options::pack(ect0_bytes, ce_bytes));
            }
            _ => {}
        }
        fill_checksums(&mut out);
        out
    }

    /// Toward the guest, an option at the very end is cut off. All others are overwritten with
    /// NOPs.
    fn strip(&self, from: Direction, out: &mut Vec<u8>) {
        let options = u32::from(self.segment.options) & OPT_OURS;
        let whole = [sys::OPT_PACK, sys::OPT_HELLO].contains(&options);
        let last = self.at.payload - 8..self.at.payload;
        if from == ToGuest && self.segment.payload_bytes == 0 && whole && self.ours == [last] {
            self.at.add_header_bytes(out, -8);
            out.truncate(self.at.payload - 8);
            return;
        }
        for option in &self.ours {
            out[option.clone()].fill(OPTION_NOP);
        }
    }

    /// Appends an option; an end-of-options byte before it becomes a NOP.
    fn append(&self, out: &mut Vec<u8>, option: &[u8]) {
        assert_eq!(self.segment.payload_bytes, 0, "an option on data");
        if let Some(end) = self.end {
            out[end..self.at.payload].fill(OPTION_NOP);
        }
        self.at.add_header_bytes(out, option.len() as i32);
        out.truncate(self.at.payload);
        out.extend(option);
    }

    /// The FACK with these counters for the segment.
    pub fn fack(&self, feedback: &sys::vcc_feedback, capable: bool, frame: &[u8]) -> Vec<u8> {
        let option = options::fack(feedback.ect0_bytes, feedback.ce_bytes);
        let mut out = frame[..self.at.l4 + TCP_BYTES].to_vec();
        let header_bytes = (TCP_BYTES + option.len()) as i32;
        out.extend(option);
        let length_at = self.at.l3 + if self.at.ipv6 { 4 } else { 2 };
        let ip_bytes = (self.at.l4 - self.at.l3) as i32 - if self.at.ipv6 { 40 } else { 0 };
        write_u16(&mut out, length_at, (ip_bytes + header_bytes) as u16);
        out[self.at.l4 + 8..][..4].copy_from_slice(&self.segment.ack.wrapping_sub(1).to_be_bytes());
        write_u16(&mut out, self.at.l4 + 12, ((header_bytes / 4) as u16) << 12 | ACK);
        // A FACK has no URG, so no urgent pointer.
        write_u16(&mut out, self.at.l4 + 18, 0);
        self.at.set_ecn(&mut out, if capable { ECT_0 } else { 0 });
        fill_checksums(&mut out);
        out
    }

    /// The frame with all fields cleared that the datapath may change.
    pub fn fixed_part(&self, frame: &[u8]) -> Vec<u8> {
        let mut fixed = frame.to_vec();
        self.at.set_ecn(&mut fixed, 0);
        self.at.set_window(&mut fixed, 0);
        let kept = self.at.flags(frame) & !(ECE | CWR | AE | PSH);
        self.at.set_flags(&mut fixed, kept);
        for value in self.mss_value.clone().into_iter().flatten().chain(self.wscale_value) {
            fixed[value] = 0;
        }
        checksum::clear(&mut fixed, &self.at);
        fixed
    }

    /// The frame with all fields cleared that the datapath may change, without its options.
    pub fn fixed_part_without_options(&self, frame: &[u8]) -> Vec<u8> {
        let mut fixed = frame[..self.at.end].to_vec();
        self.at.set_ecn(&mut fixed, 0);
        let length_at = self.at.l3 + if self.at.ipv6 { 4 } else { 2 };
        write_u16(&mut fixed, length_at, 0);
        checksum::clear(&mut fixed, &self.at);
        // Data offset, flags and window may change.
        fixed[self.at.l4 + 12..][..4].fill(0);
        fixed.drain(self.at.l4 + TCP_BYTES..self.at.payload);
        fixed
    }
}

/// No TCP sends SYN with RST, or a segment without ACK after the handshake.
fn plausible(flags: u16) -> bool {
    match flags & SYN {
        0 => flags & (ACK | RST) != 0,
        _ => flags & RST == 0,
    }
}
