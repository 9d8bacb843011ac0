//! From a frame to the engine's segment, and back to a frame with the engine's action applied.

use std::ops::Range;

use vcc_engine::{Action, Segment, sys};
use vcc_port::{Counter, counters};

use crate::checksum;
use crate::layout::Layout;
use crate::wire::*;

/// A frame as the native engine shall see it.
pub struct Parsed {
    pub at: Layout,
    pub segment: Segment,
    mss_value: Option<Range<usize>>,
    wscale_value: Option<usize>,
}

/// MD5 (RFC 2385) and TCP-AO (RFC 5925).
const SIGNATURES: [u8; 2] = [19, 29];

impl Parsed {
    pub fn of(frame: &[u8], gso_size: u32) -> Result<Parsed, Counter> {
        let at = Layout::of(frame, gso_size)?;
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
        let mut parsed = Parsed { at, segment, mss_value: None, wscale_value: None };
        let kinds = parsed.take_options(frame).ok_or(counters::BAD_OPTIONS)?;
        if kinds.iter().any(|kind| SIGNATURES.contains(kind)) {
            return Err(counters::SIGNED);
        }
        Ok(parsed)
    }

    /// The kinds that are there; none where an option's length makes no sense (RFC 9293, 3.1).
    fn take_options(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let mut kinds = Vec::new();
        let mut here = self.at.l4 + TCP_BYTES;
        while here < self.at.payload {
            let rest = &frame[here..self.at.payload];
            let length = match rest[0] {
                OPTION_END => break,
                OPTION_NOP => 1,
                _ => usize::from(*rest.get(1)?),
            };
            if rest[0] != OPTION_NOP {
                let option = rest.get(..length).filter(|option| option.len() >= 2)?;
                self.take_option(option, here);
                kinds.push(option[0]);
            }
            here += length;
        }
        Some(kinds)
    }

    fn take_option(&mut self, option: &[u8], here: usize) {
        let segment = &mut self.segment;
        segment.options |= match (option[0], option.len()) {
            (OPTION_MSS, 4) => {
                segment.mss = read_u16(option, 2);
                self.mss_value = Some(here + 2..here + 4);
                sys::OPT_MSS
            }
            (OPTION_WSCALE, 3) => {
                segment.wscale = option[2];
                self.wscale_value = Some(here + 2);
                sys::OPT_WSCALE
            }
            (OPTION_SACK_PERMITTED, 2) => sys::OPT_SACK_PERMITTED,
            (OPTION_TIMESTAMPS, 10) => sys::OPT_TIMESTAMPS,
            (OPTION_SACK, 10..) => sys::OPT_SACK,
            _ => 0,
        } as u8;
    }

    /// The frame as it shall leave, checksums computed from scratch.
    pub fn apply(&self, action: &Action, frame: &[u8]) -> Vec<u8> {
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
        checksum::fill(&mut out);
        out
    }

    /// The frame without all that the datapath may ever change: the rest must stay as it was.
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
}

/// No TCP opens and closes at once, or sends outside of a handshake without ACK.
fn plausible(flags: u16) -> bool {
    match flags & SYN {
        0 => flags & (ACK | RST) != 0,
        _ => flags & (FIN | RST) == 0,
    }
}
