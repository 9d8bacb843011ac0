//! What a flow's path carries, as far as ICMP messages (`engine/pmtu.h`) or losses have shown.

use vcc_engine::{FlowState, Hold, Params, PathMtu, Recovery, TooBig};

use super::unit_bytes;
use crate::parse::Parsed;
use vcc_net::seq::before;

#[derive(Clone, Default)]
pub(crate) struct Path {
    mtu: PathMtu,
    /// The path does not carry the segments before this one: they leave in small ones.
    small_until: Option<u32>,
}

/// Timeouts in a row after which segments may be too large for the path though no ICMP message has
/// reported it (RFC 8899, 4.3: black hole detection).
const BLACK_HOLE_TIMEOUTS: u8 = 3;
/// What any path carries: IPv4's default MSS and that of IPv6's least MTU (RFC 9293, 3.7.1).
const SMALL_BYTES: u32 = 536;
const SMALL_BYTES_IPV6: u32 = 1220;

impl Path {
    #[cfg(test)]
    pub(crate) fn of_mtu(mtu: PathMtu) -> Self {
        Path { mtu, small_until: None }
    }

    /// An ICMP message that is about the flow's segments makes them smaller; false if it is not.
    pub(crate) fn shrink(
        &mut self,
        flow: &mut FlowState,
        hold: &Hold,
        recovery: &mut Recovery,
        params: &Params,
        message: &TooBig,
    ) -> bool {
        flow.pmtu_shrinks(hold, recovery, &mut self.mtu, params, message)
    }

    /// After so many timeouts in a row; `end` is one past the last byte that is held.
    pub(crate) fn note_timeout(&mut self, timeouts: u8, end: u32) {
        if timeouts >= BLACK_HOLE_TIMEOUTS {
            self.small_until = Some(end);
        }
    }

    pub(crate) fn acked(&mut self, una: u32) {
        // Sequence numbers wrap, and the path may have become another one.
        self.small_until.take_if(|until| !before(una, *until));
    }

    /// The payload that the segments of this one may have; None if it may leave as it is.
    pub(crate) fn limit_bytes(&self, parsed: &Parsed, now_us: u64) -> Option<u32> {
        if !self.mtu.is_known() && self.small_until.is_none() {
            return None;
        }
        let by_messages = self.mtu.limit_bytes(now_us, parsed.headers_bytes() as u32);
        let by_timeouts = match self.small_until {
            Some(until) if before(parsed.segment.seq, until) && parsed.ip.ipv6 => SMALL_BYTES_IPV6,
            Some(until) if before(parsed.segment.seq, until) => SMALL_BYTES,
            _ => u32::MAX,
        };
        let limit_bytes = by_messages.min(by_timeouts);
        (unit_bytes(&parsed.segment) > limit_bytes).then_some(limit_bytes)
    }
}

#[cfg(test)]
mod tests {
    use vcc_frames::{Packet, payload};

    use super::super::reparsed;
    use super::*;
    use crate::testing::{Talk, framed};

    #[test]
    fn a_small_path_is_so_for_what_was_sent_then() {
        let limit_bytes = |path: &Path, seq| {
            let frame = framed(&Packet { seq, payload: payload(1000), ..Talk::v4().segment(true) });
            path.limit_bytes(&reparsed(&frame), 0)
        };
        let mut path = Path::default();
        path.note_timeout(BLACK_HOLE_TIMEOUTS - 1, 1000);
        assert_eq!(limit_bytes(&path, 999), None);
        path.note_timeout(BLACK_HOLE_TIMEOUTS, 1000);
        path.acked(500);
        assert_eq!([999, 1000].map(|seq| limit_bytes(&path, seq)), [Some(SMALL_BYTES), None]);
        path.acked(1000);
        // After 2 GiB, sequence numbers before it come again.
        assert_eq!(limit_bytes(&path, 1000_u32.wrapping_add((1 << 31) + 1)), None);
    }
}
