//! A path whose MTU changes. Packets too big for it are lost, and a router reports it to their sender
//! (RFC 1191, 4; RFC 4443, 3.2), or this report is filtered. As if all of that happened before the last link.

use vcc_frames::icmp;

use crate::frame;

/// What the path carries from a time on, until the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathMtu {
    pub from_ns: u64,
    pub mtu_bytes: u16,
    /// Senders receive a report of packets that are too big.
    pub answers: bool,
}

/// What becomes of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fits {
    Yes,
    No {
        /// A frame to its sender.
        answer: Option<Vec<u8>>,
    },
}

/// Of the packet, as much is quoted as an IPv4 router has to (RFC 792), and most do.
const QUOTED_BYTES: usize = 8;

/// The last of these that has begun.
fn now(mtus: &[PathMtu], now_ns: u64) -> Option<PathMtu> {
    let begun = mtus.partition_point(|mtu| mtu.from_ns <= now_ns);
    mtus[..begun].last().copied()
}

/// `mtus` are in order of time.
pub(super) fn fits(mtus: &[PathMtu], now_ns: u64, frame: &[u8]) -> Fits {
    let Some(PathMtu { mtu_bytes, answers, .. }) = now(mtus, now_ns) else { return Fits::Yes };
    // What may be fragmented passes, as if it had been and were put together again.
    let Some(at) = frame::unfragmentable(frame) else { return Fits::Yes };
    if at.end - at.l3 <= mtu_bytes.into() {
        return Fits::Yes;
    }
    Fits::No { answer: answers.then(|| icmp::too_big(frame, &at, mtu_bytes.into(), QUOTED_BYTES)) }
}

#[cfg(test)]
mod tests {
    use vcc_frames::{Packet, payload};

    use super::*;

    const FROM_NS: u64 = 100;

    fn packet(ipv6: bool, payload_bytes: usize) -> Packet {
        let ends = if ipv6 { ["[fd00::1]:1", "[fd00::2]:2"] } else { ["10.0.0.1:1", "10.0.0.2:2"] };
        let [from, to] = ends.map(|end| end.parse().expect("an end"));
        Packet { payload: payload(payload_bytes), ..Packet::new(from, to) }
    }

    fn mtu(mtu_bytes: u16, answers: bool) -> [PathMtu; 2] {
        [
            PathMtu { from_ns: FROM_NS, mtu_bytes, answers },
            PathMtu { from_ns: 2 * FROM_NS, mtu_bytes: 1500, answers },
        ]
    }

    #[test]
    fn what_is_too_big_is_lost_and_reported_while_the_path_is_narrow() {
        for ipv6 in [false, true] {
            let headers_bytes = if ipv6 { 60 } else { 40 };
            let whole = packet(ipv6, 1400 - headers_bytes);
            let frame = whole.frame();
            let at = |mtu_bytes, answers, now_ns| fits(&mtu(mtu_bytes, answers), now_ns, &frame);
            assert_eq!(at(1400, true, FROM_NS), Fits::Yes);
            for now_ns in [0, FROM_NS - 1, 2 * FROM_NS] {
                assert_eq!(at(1399, true, now_ns), Fits::Yes);
            }
            assert_eq!(at(1399, false, FROM_NS), Fits::No { answer: None });
            let Fits::No { answer: Some(answer) } = at(1399, true, FROM_NS) else {
                panic!("no answer")
            };
            assert_eq!((&answer[..6], &answer[6..12]), (&frame[6..12], &frame[..6]));
            let l3 = whole.headers().l3;
            assert!(icmp::verify(&answer, l3));
            let icmp_at = l3 + if ipv6 { 40 } else { 20 };
            let head = if ipv6 { [2, 0] } else { [3, 4] };
            assert_eq!(
                (&answer[icmp_at..icmp_at + 2], &answer[icmp_at + 6..icmp_at + 8]),
                (&head[..], &1399u16.to_be_bytes()[..])
            );
            assert!(frame[l3..].starts_with(&answer[icmp_at + 8..]));
        }
    }

    #[test]
    fn what_routers_fragment_fits() {
        let mut frame = packet(false, 1400).frame();
        frame[frame_flags()] &= !0x40;
        assert_eq!(fits(&mtu(600, true), FROM_NS, &frame), Fits::Yes);
        assert_eq!(fits(&mtu(600, true), FROM_NS, &frame[..20]), Fits::Yes);
    }

    /// Of an IPv4 header behind Ethernet's.
    fn frame_flags() -> usize {
        14 + 6
    }
}
