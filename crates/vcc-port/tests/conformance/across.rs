//! What a port may change of a segment, by docs/translation.md, while nothing is congested.

use vcc_frames::Packet;
use vcc_frames::wire::*;

use crate::bed::Mode;
use crate::option::{TcpOption, decode};
use crate::wire::Seen;

/// What the handshake of a connection has shown so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Handshake {
    /// The guest asked for ECN itself, or answered a request for it.
    guest_has_ecn: bool,
    guest_opened: bool,
    peer_has_scale: bool,
    guest_has_scale: bool,
    peer_scale: u8,
    shown_scale: u8,
    /// A SYN or SYN-ACK did not pass the port.
    is_seen_in_part: bool,
}

impl Handshake {
    /// A port leaves alone who negotiates ECN; it learns of it too late if the guest listens.
    fn is_left_alone(&self) -> bool {
        self.guest_has_ecn && self.guest_opened
    }

    /// A segment passes another card, and no port changes it.
    pub fn beside(&mut self, seen: &Seen, from_guest: bool) -> Result<(), String> {
        self.is_seen_in_part |= seen.packet.flags & SYN != 0;
        match from_guest {
            true => self::from_guest(Mode::Plain, self, seen, seen),
            false => to_guest(Mode::Plain, self, seen, seen),
        }
    }

    fn scales(&self) -> (u8, u8) {
        match self.peer_has_scale && self.guest_has_scale {
            true => (self.peer_scale, self.shown_scale),
            false => (0, 0),
        }
    }
}

fn scale_of(packet: &Packet) -> Option<u8> {
    options_of(packet).into_iter().find_map(|option| match option {
        TcpOption::WindowScale(value) => value,
        _ => None,
    })
}

fn options_of(packet: &Packet) -> Vec<TcpOption> {
    decode(&packet.options, 0)
}

fn require(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("the port changed {what}")) }
}

/// Headers that no port changes.
fn compare_rest(before: &Seen, after: &Seen) -> Result<(), String> {
    let (one, other) = (&before.packet, &after.packet);
    let ip = |seen: &Seen| {
        // Identification, fragments, time to live, protocol; then the addresses.
        let ip = &seen.frame[ETHERNET_BYTES..];
        [&ip[4..IPV4_CHECK_AT], &ip[12..IPV4_BYTES]].concat()
    };
    require(one.macs == other.macs && ip(before) == ip(after), "a header before TCP's")?;
    let dscp = |packet: &Packet| packet.traffic_class & !ECN_MASK;
    require(dscp(one) == dscp(other), "the DSCP")?;
    require((one.from, one.to) == (other.from, other.to), "ports")?;
    require((one.seq, one.ack) == (other.seq, other.ack), "sequence numbers")?;
    require(one.payload == other.payload, "payload")?;
    require(one.urgent == other.urgent, "the urgent pointer")
}

/// Compares a segment from the guest with what reached the fabric.
pub fn from_guest(
    mode: Mode,
    handshake: &mut Handshake,
    before: &Seen,
    after: &Seen,
) -> Result<(), String> {
    compare_rest(before, after)?;
    let (one, other) = (&before.packet, &after.packet);
    if one.flags & SYN != 0 {
        handshake.guest_opened = one.flags & ACK == 0;
        handshake.guest_has_ecn = one.flags & ECE != 0;
        handshake.guest_has_scale = scale_of(one).is_some();
    }
    let may_change = mode.translates() && !handshake.guest_has_ecn;
    // A request for AccECN (RFC 9768, 3.1.1) is one for ECN to these peers.
    let asks = if one.flags & (SYN | ACK) == SYN { AE } else { 0 };
    let ecn = if may_change { ECE | CWR | asks } else { 0 };
    require(one.flags & !ecn == other.flags & !ecn, "flags")?;
    require(one.window == other.window, "the guest's window")?;
    let marks = (one.traffic_class & ECN_MASK, other.traffic_class & ECN_MASK);
    // DCTCP's segments are ECT without exception (RFC 8257, 3.1), others' if they have data.
    let may_be_ect =
        may_change && one.flags & SYN == 0 && (mode == Mode::Dctcp || !one.payload.is_empty());
    // Of a handshake that it has not seen, a port does not know whether anyone answers marks.
    let may_be_unmarked = mode.translates() && handshake.is_seen_in_part && marks.1 == 0;
    let is_right = marks.0 == marks.1 || (may_be_ect && marks == (0, ECT_0)) || may_be_unmarked;
    require(is_right, "the ECN field")?;
    let mut options = options_of(other);
    if may_change && one.flags & (SYN | ACK) == SYN {
        options.retain(|option| *option != TcpOption::Hello);
    }
    require(options_of(one) == options, "options")
}

/// Compares a segment from the fabric with what reached the guest.
pub fn to_guest(
    mode: Mode,
    handshake: &mut Handshake,
    before: &Seen,
    after: &Seen,
) -> Result<(), String> {
    compare_rest(before, after)?;
    let (one, other) = (&before.packet, &after.packet);
    let is_syn = one.flags & SYN != 0;
    if is_syn {
        handshake.peer_has_scale = scale_of(one).is_some();
        handshake.peer_scale = scale_of(one).unwrap_or(0).min(14);
        handshake.shown_scale = scale_of(other).unwrap_or(0).min(14);
    }
    let may_change = mode.translates() && !handshake.is_left_alone();
    let ecn = if may_change { ECE | CWR } else { 0 };
    require(one.flags & !ecn == other.flags & !ecn, "flags")?;
    let marks = (one.traffic_class & ECN_MASK, other.traffic_class & ECN_MASK);
    require(marks.0 == marks.1 || (may_change && marks.1 == 0), "the ECN field")?;
    if !may_change || is_syn || one.flags & RST != 0 {
        require(one.window == other.window, "the window")?;
    } else {
        let (sent, shown) = handshake.scales();
        let (sent, shown) = (u32::from(one.window) << sent, u32::from(other.window) << shown);
        require(shown <= sent, "the window, to more than the peer's")?;
        require((shown == 0) == (sent == 0), "the window from or to zero")?;
    }
    compare_options(may_change && is_syn, one, other)
}

fn compare_options(may_change: bool, one: &Packet, other: &Packet) -> Result<(), String> {
    let (one, other) = (options_of(one), options_of(other));
    require(one.len() == other.len(), "the number of options")?;
    for (before, after) in one.iter().zip(&other) {
        let is_lower = match (before, after) {
            (TcpOption::Mss(Some(before)), TcpOption::Mss(Some(after))) => after <= before,
            (TcpOption::WindowScale(Some(before)), TcpOption::WindowScale(Some(after))) => {
                after <= before
            }
            _ => false,
        };
        require(before == after || (may_change && is_lower), "an option")?;
    }
    Ok(())
}
