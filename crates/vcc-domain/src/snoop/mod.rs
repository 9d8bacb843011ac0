//! What a port keeps to acknowledge in a guest's name: what the guest's frames look like, and copies
//! of what was promised.

mod accepted;
mod answer;
mod blocks;
mod copies;
mod sharing;
mod sound;
mod stored;

use std::net::IpAddr;

use vcc_engine::{FlowKey, FlowState, Hold, Snoop, sys};

use crate::frame::Frame;
use crate::handover::{Frames, LinkRow, SnoopRow, SnoopedRow};
use crate::neighbours;
use crate::parse::Parsed;
pub(crate) use accepted::{Accepted, Listener, Numbers, Offsets, Terms, Waits};
pub(crate) use answer::{Answer, Made};
pub(crate) use blocks::{blocks, strip_promised};
pub(crate) use copies::{Copies, SpareList};
pub(crate) use sharing::{Share, Sharing};
pub(crate) use sound::{has_right_sums, is_readable, is_sound};
pub(crate) use stored::{Current, moved, renewed};
use vcc_net::seq::{after, before};
use vcc_net::wire::*;

/// Ranges behind holes that are remembered: what fits two options.
const BLOCKS_MAX: usize = 8;

/// Ethernet with a tag, and IPv6 without extension headers.
pub(crate) const HEADERS_MAX_BYTES: usize = ETHERNET_BYTES + VLAN_TAG_BYTES + IPV6_BYTES;

/// What a port keeps of a flow besides its state.
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
    /// The buffers, besides those set aside for the flow, from which it or a window update is due.
    pub opens_at_segs: Option<u32>,
    /// The share of the ring from which its peer's window is widened.
    pub widens_at_segs: Option<u32>,
    pub share: Share,
    /// One past the last data that has been stored: until the guest has acknowledged that itself, it may
    /// be in no memory that outlives the port.
    pub stored_end: Option<u32>,
    /// The peer's FIN, which waits until the guest has all data before it, with its sequence number.
    pub fin: Option<(u32, Frame)>,
    /// What the port has answered in the guest's name.
    pub accepted: Accepted,
    /// The sequence number of the peer's SYN, and its flags and options, if the answer to one like it can be
    /// known.
    pub syn_seq: u32,
    pub syn_shape: Option<(u16, u16)>,
    /// Its turn among the flows of which stored data waits for the guest's ring.
    pub turn: Option<u64>,
    /// What is stored behind holes, the latest first, as SACK blocks report it (RFC 2018, 4).
    behind: Vec<(u32, u32)>,
}

impl Snooped {
    /// For another host; None: nothing was ever promised.
    pub(crate) fn row(&self, frames: &mut Frames) -> Option<SnoopedRow> {
        let is_new = self.snoop.0.opening == 0 && self.snoop.0.syn_tsval == 0;
        (!is_new).then(|| SnoopedRow {
            snoop: SnoopRow::from_raw(&self.snoop.0),
            link: self.headers.row(),
            tsval: self.tsval,
            copies: self.copies.frames().map(|frame| frames.push(frame)).collect(),
            stored_end: self.stored_end,
            accepted: self.accepted.row(frames),
            fin: self.fin.as_ref().map(|(seq, fin)| (*seq, frames.push(fin))),
        })
    }

    /// Without its copies; None: the row is inconsistent.
    pub(crate) fn from_row(row: &SnoopedRow) -> Option<Self> {
        let mut snoop = Snoop(row.snoop.raw());
        snoop.falls_silent();
        let headers = Headers::from_row(&row.link)?;
        let sys::vcc_snoop { ring_nxt, guest_ack, stored_bytes, .. } = snoop.0;
        let is_due = snoop.is_promise_due();
        let due_bytes = if is_due { ring_nxt.wrapping_sub(guest_ack) } else { 0 };
        let mut snooped = Snooped { snoop, headers, tsval: row.tsval, ..Snooped::default() };
        snooped.stored_end = row.stored_end.or((stored_bytes > 0).then_some(ring_nxt));
        snooped.bar_unknown();
        let is_state = stored_bytes <= due_bytes && (!is_due || snooped.headers.are_known());
        is_state.then_some(snooped)
    }

    /// Has something been promised that only the port may have?
    pub(crate) fn owes_stored(&self) -> bool {
        self.stored_end.is_some_and(|end| after(end, self.snoop.0.guest_ack))
    }

    /// Data has been stored.
    pub(crate) fn note_stored(&mut self) {
        self.stored_end = Some(self.snoop.0.ring_nxt);
    }

    /// Data has been stored behind a hole.
    pub(crate) fn note_behind(&mut self, mut from: u32, mut end: u32) {
        let nxt = self.snoop.0.ring_nxt;
        self.behind.retain(|&(left, right)| {
            let joins = !after(left, end) && !after(from, right);
            if joins {
                from = if before(left, from) { left } else { from };
                end = if after(right, end) { right } else { end };
            }
            !joins && after(left, nxt)
        });
        self.behind.insert(0, (from, end));
        self.behind.truncate(BLOCKS_MAX);
    }

    /// What is stored behind holes, the latest first.
    pub(crate) fn behind(&self) -> impl Iterator<Item = (u32, u32)> {
        let nxt = self.snoop.0.ring_nxt;
        self.behind.iter().copied().filter(move |(from, _)| after(*from, nxt))
    }

    /// What the peer would send the guest now.
    pub(crate) fn current(&self, flow: &FlowState, hold: &Hold) -> Current {
        Current::new(flow, hold, self.snoop.0.ts_recent)
    }

    /// When the guest is asked for its window.
    pub(crate) fn probe_ns(&self, flow: &FlowState, heard_ns: u64) -> Option<u64> {
        let is_due = self.snoop.probes() && !is_reset(flow) && !self.accepted.is_waiting();
        is_due.then(|| self.copies.probe_ns(heard_ns))
    }

    /// How far there are copies of what follows the promise without a gap.
    pub(crate) fn covered_nxt(&self) -> u32 {
        let nxt = self.snoop.0.ring_nxt;
        self.copies.covered(nxt, nxt.wrapping_add(sys::RECEIVE_BUFFER_MAX_BYTES * 2))
    }

    /// Records a segment of the guest.
    pub(crate) fn note(&mut self, frame: &Frame, parsed: &Parsed) {
        self.headers.note(frame, parsed);
        self.tsval = parsed.tsval().unwrap_or(self.tsval);
        self.bar_unknown();
    }

    /// Nothing can be sent in the name of a guest whose frames all have IP options.
    fn bar_unknown(&mut self) {
        if !self.headers.are_known() {
            self.snoop.0.barred = 1;
        }
    }

    /// After a change: has a promise been given, where none was `owed`? Then it wants a timer.
    #[must_use]
    pub(crate) fn note_promise(&mut self, now_ns: u64, owed: bool) -> bool {
        let begins = !owed && self.snoop.is_promise_due();
        if begins {
            self.copies.begin(now_ns);
        }
        begins
    }

    /// No acknowledgement is due any more, neither later nor when there is room.
    pub(crate) fn cancel_answer(&mut self) {
        (self.answer_waits, self.answer_ns) = (false, None);
    }

    /// A SACK block of the guest. It counts as far as there are copies.
    pub(crate) fn note_block(&mut self, from: u32, end: u32) {
        let snoop = &self.snoop.0;
        let is_known = !before(from, snoop.sacked_from) && !after(from, snoop.sacked_end);
        let known = if is_known && after(end, snoop.sacked_end) { snoop.sacked_end } else { from };
        self.snoop.sacked(from, self.copies.covered(known, end));
    }

    /// When the port gives the guest the promised data again that it has not acknowledged; never
    /// after the connection has been reset.
    pub(crate) fn again_ns(&self, flow: &FlowState, heard_ns: u64) -> Option<u64> {
        let owes = after(self.snoop.given_nxt(), self.snoop.0.guest_ack)
            && self.snoop.is_promise_due()
            && !is_reset(flow);
        owes.then(|| self.copies.due_ns(heard_ns))
    }

    /// The first promised segments, for the guest to be given again.
    pub(crate) fn given_again(
        &mut self,
        now_ns: u64,
        count: usize,
        current: Current,
    ) -> impl Iterator<Item = Frame> {
        let Snoop(sys::vcc_snoop { guest_ack, ring_nxt, .. }) = self.snoop;
        debug_assert_eq!(self.copies.covered(guest_ack, ring_nxt), ring_nxt, "law 16");
        self.copies.again(now_ns, count, self.snoop.given_nxt(), current)
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

    fn row(&self) -> LinkRow {
        let bytes = self.bytes[..self.tcp_at.into()].to_vec();
        LinkRow { bytes, ip_at: self.ip_at, tcp_at: self.tcp_at }
    }

    /// To the peer of this connection, at this MAC address.
    fn redirect(&mut self, key: &FlowKey, peer_mac: &[u8]) {
        self.bytes[..MAC_BYTES].copy_from_slice(peer_mac);
        let ip = &mut self.bytes[self.ip_at.into()..self.tcp_at.into()];
        match key.peer().ip() {
            IpAddr::V4(peer) => {
                ip[IPV4_DESTINATION_AT..][..4].copy_from_slice(&peer.octets());
            }
            IpAddr::V6(peer) => {
                ip[IPV6_DESTINATION_AT..][..16].copy_from_slice(&peer.octets());
            }
        }
    }

    fn from_row(LinkRow { bytes, ip_at, tcp_at }: &LinkRow) -> Option<Self> {
        let mut headers = Headers { ip_at: *ip_at, tcp_at: *tcp_at, ..Headers::default() };
        let ip_bytes = usize::from(tcp_at.checked_sub(*ip_at)?);
        let is_none = bytes.is_empty() && ip_bytes == 0;
        let is_whole = bytes.len() == usize::from(*tcp_at)
            && usize::from(*ip_at) >= ETHERNET_BYTES
            && (ip_bytes == IPV4_BYTES || ip_bytes == IPV6_BYTES);
        headers.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        (is_none || is_whole).then_some(headers)
    }

    fn are_known(&self) -> bool {
        self.tcp_at > 0
    }

    fn guest_mac(&self) -> &[u8] {
        &self.bytes[MAC_BYTES..2 * MAC_BYTES]
    }

    pub(crate) fn neighbour(&self) -> sys::vcc_neighbour {
        neighbours::beside(&self.bytes)
    }

    fn is_ipv6(&self) -> bool {
        self.tcp_at - self.ip_at == IPV6_BYTES as u8
    }
}

/// Has the connection ended by a RST? After both FINs, data may still have to reach the guest.
pub(crate) fn is_reset(flow: &FlowState) -> bool {
    let fins = flow.has(sys::FLOW_FIN_GUEST) && flow.has(sys::FLOW_FIN_PEER);
    u32::from(flow.stage) == sys::STAGE_CLOSED && !fins
}
