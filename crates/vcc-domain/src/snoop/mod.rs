//! What a port keeps to acknowledge in a guest's name: what the guest's frames look like, and copies
//! of what was promised.

mod answer;
mod blocks;
mod copies;
mod sound;

use vcc_engine::{Snoop, sys};

use crate::frame::Frame;
use crate::parse::Parsed;
use crate::wire::*;
pub(crate) use answer::Answer;
pub(crate) use blocks::{blocks, without_promised};
pub(crate) use copies::Copies;
pub(crate) use sound::is_sound;

/// Ethernet with a tag, and IPv6 without extension headers.
const HEADERS_MAX_BYTES: usize = ETHERNET_BYTES + VLAN_TAG_BYTES + IPV6_BYTES;

/// What a port keeps of a flow beside its state.
#[derive(Clone, Default)]
pub(crate) struct Snooped {
    pub snoop: Snoop,
    pub headers: Headers,
    /// The guest's last TSval.
    pub tsval: u32,
    pub copies: Copies,
    /// When a delayed ACK is due.
    pub answer_ns: Option<u64>,
    /// The port's timer for the flow; it may expire for nothing.
    pub timer_ns: Option<u64>,
    /// An acknowledgement waits for room.
    pub answer_waits: bool,
    /// So does it, or the peer has been told less than the guest's own window.
    pub waits: bool,
}

impl Snooped {
    /// Records a segment of the guest.
    pub(crate) fn note(&mut self, frame: &Frame, parsed: &Parsed) {
        self.headers.note(frame, parsed);
        self.tsval = parsed.tsval(frame).unwrap_or(self.tsval);
    }
}

/// Link and IP headers of the guest's last frame without IP options.
#[derive(Clone, Copy)]
pub(crate) struct Headers {
    bytes: [u8; HEADERS_MAX_BYTES],
    ip_at: u8,
    tcp_at: u8,
}

impl Default for Headers {
    fn default() -> Self {
        Headers { bytes: [0; HEADERS_MAX_BYTES], ip_at: 0, tcp_at: 0 }
    }
}

impl Headers {
    fn note(&mut self, frame: &Frame, parsed: &Parsed) {
        if !parsed.ip.is_plain() {
            return;
        }
        let tcp_at = parsed.ip.tcp_at;
        self.bytes[..tcp_at].copy_from_slice(&frame.bytes[..tcp_at]);
        (self.ip_at, self.tcp_at) = (parsed.ip.at as u8, tcp_at as u8);
    }

    fn guest_mac(&self) -> &[u8] {
        &self.bytes[MAC_BYTES..2 * MAC_BYTES]
    }

    fn is_ipv6(&self) -> bool {
        self.tcp_at - self.ip_at == IPV6_BYTES as u8
    }
}

/// Has the connection ended by a RST? After both FINs, data may still have to reach the guest.
pub(crate) fn is_reset(flow: &vcc_engine::FlowState) -> bool {
    let fins = flow.has(sys::FLOW_FIN_GUEST) && flow.has(sys::FLOW_FIN_PEER);
    u32::from(flow.stage) == sys::STAGE_CLOSED && !fins
}
