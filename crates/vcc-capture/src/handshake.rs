//! The handshake's round trip, in the two parts into which the place of the capture divides it.

use crate::segment::Segment;

/// The time from the capture to an end and back; None if no handshake shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    pub guest_ns: Option<u64>,
    pub peer_ns: Option<u64>,
    /// A repeated SYN or SYN-ACK leaves open which of the two was answered (Karn's algorithm).
    syn: Sent,
    syn_ack: Sent,
    accepted_by_guest: bool,
    is_over: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sent {
    #[default]
    Not,
    Once(u64),
    Again,
}

impl Sent {
    fn again(self, now_ns: u64) -> Self {
        if self == Self::Not { Self::Once(now_ns) } else { Self::Again }
    }

    fn elapsed_ns(self, now_ns: u64) -> Option<u64> {
        match self {
            Self::Once(sent_ns) => now_ns.checked_sub(sent_ns),
            _ => None,
        }
    }
}

impl Handshake {
    pub(crate) fn note(&mut self, now_ns: u64, segment: &Segment, from_guest: bool) {
        if self.is_over {
            return;
        }
        // The end that has just responded.
        let part = if from_guest { &mut self.guest_ns } else { &mut self.peer_ns };
        if segment.opens() {
            self.syn = self.syn.again(now_ns);
        } else if segment.accepts() {
            if self.syn_ack == Sent::Not {
                *part = self.syn.elapsed_ns(now_ns);
            }
            self.syn_ack = self.syn_ack.again(now_ns);
            self.accepted_by_guest = from_guest;
        } else {
            // If the ACK is missing, nothing later shows when it came.
            if from_guest != self.accepted_by_guest {
                *part = self.syn_ack.elapsed_ns(now_ns);
            }
            self.is_over = true;
        }
    }

    /// The guest's part of both, from 0, at the guest, to 1, at the peer.
    pub fn guest_part(&self) -> Option<f64> {
        let (guest_ns, peer_ns) = (self.guest_ns? as f64, self.peer_ns? as f64);
        let sum_ns = guest_ns + peer_ns;
        (sum_ns > 0.0).then(|| guest_ns / sum_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use vcc_engine::sys::{TCP_ACK, TCP_SYN};

    use super::*;

    fn noted(segments: &[(u64, u32, bool)]) -> Handshake {
        let mut handshake = Handshake::default();
        let end = SocketAddr::from(([10, 0, 0, 1], 1));
        for &(now_ns, flags, from_guest) in segments {
            let (vlan, seq, ack, payload_bytes, ip_ecn, macs) = Default::default();
            let segment =
                Segment { from: end, to: end, vlan, seq, ack, flags, payload_bytes, ip_ecn, macs };
            handshake.note(now_ns, &segment, from_guest);
        }
        handshake
    }

    const SYN_ACK: u32 = TCP_SYN | TCP_ACK;

    #[test]
    fn the_place_divides_the_round_trip() {
        let opened = noted(&[(10, TCP_SYN, true), (100, SYN_ACK, false), (110, TCP_ACK, true)]);
        assert_eq!((opened.guest_ns, opened.peer_ns), (Some(10), Some(90)));
        assert_eq!(opened.guest_part(), Some(0.1));
        let accepted = noted(&[(10, TCP_SYN, false), (20, SYN_ACK, true), (110, TCP_ACK, false)]);
        assert_eq!(accepted.guest_part(), Some(0.1));
        let later = noted(&[
            (10, TCP_SYN, true),
            (100, SYN_ACK, false),
            (110, TCP_ACK, true),
            (500, TCP_ACK, false),
        ]);
        assert_eq!(later.guest_part(), Some(0.1));
    }

    #[test]
    fn what_is_repeated_or_missing_is_unknown() {
        let again = noted(&[
            (10, TCP_SYN, true),
            (50, TCP_SYN, true),
            (100, SYN_ACK, false),
            (110, TCP_ACK, true),
        ]);
        assert_eq!((again.guest_ns, again.peer_ns), (Some(10), None));
        let answered = noted(&[
            (10, TCP_SYN, true),
            (100, SYN_ACK, false),
            (105, SYN_ACK, false),
            (110, TCP_ACK, true),
        ]);
        assert_eq!((answered.guest_ns, answered.peer_ns), (None, Some(90)));
        let unanswered = [(10, TCP_SYN, true), (20, SYN_ACK, false), (500, TCP_ACK, false)];
        assert_eq!(noted(&unanswered).peer_ns, Some(10));
        assert_eq!(noted(&[(10, TCP_ACK, true), (20, TCP_ACK, false)]).guest_part(), None);
        assert_eq!(noted(&[(10, TCP_SYN, true)]).guest_part(), None);
    }
}
