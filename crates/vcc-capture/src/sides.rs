//! Which end of each connection is the guest.

use std::collections::HashMap;
use std::net::SocketAddr;

use vcc_engine::FlowKey;

use crate::segment::Segment;

/// Two ends in order, and their VLAN.
type Pair = (SocketAddr, SocketAddr, Option<u16>);

/// An end that is a guest's, by the user's words; None: they are not given.
pub(crate) type IsGuest = dyn Fn(SocketAddr) -> bool;

/// The connections of which any segment was seen, by their ends.
#[derive(Default)]
pub(crate) struct Sides {
    pairs: HashMap<Pair, Opener>,
    /// Those whose SYN was not seen.
    unopened: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Opener {
    Unknown,
    /// The first of the pair.
    First,
    Second,
}

/// A segment's direction at the guest's port, and the key of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    pub from_guest: bool,
    pub key: FlowKey,
}

impl Side {
    fn new(segment: &Segment, from_guest: bool) -> Self {
        let Segment { from, to, vlan, .. } = *segment;
        let (guest, peer) = if from_guest { (from, to) } else { (to, from) };
        Self { from_guest, key: FlowKey::new(guest, peer, vlan) }
    }
}

impl Sides {
    /// The connections whose SYN was not seen, at most `max`.
    pub(crate) fn unopened(&self) -> u64 {
        self.unopened
    }

    /// Judges a segment. None: neither end is a guest. At most twice `max` connections are remembered.
    /// `is_opening`: the port has a flow of this key in its handshake, so another SYN, of either end, is of
    /// the same connection (RFC 9293, 3.5: both ends may open it).
    pub(crate) fn judge(
        &mut self,
        segment: &Segment,
        is_guest: Option<&IsGuest>,
        max: usize,
        is_opening: impl Fn(&FlowKey) -> bool,
    ) -> Option<Side> {
        let Segment { from, to, vlan, opens } = *segment;
        let named = is_guest.map(|is_guest| (is_guest(from), is_guest(to)));
        if named == Some((false, false)) {
            return None;
        }
        let is_first = from <= to;
        let pair = if is_first { (from, to, vlan) } else { (to, from, vlan) };
        let known = self.pairs.get(&pair).copied();
        let from_opener = |opener| (opener == Opener::First) == is_first;
        let opener = match known {
            Some(known @ (Opener::First | Opener::Second))
                if !opens || is_opening(&Side::new(segment, from_opener(known)).key) =>
            {
                known
            }
            _ if opens && is_first => Opener::First,
            _ if opens => Opener::Second,
            _ => Opener::Unknown,
        };
        if known != Some(opener) && (known.is_some() || self.pairs.len() < 2 * max) {
            let was_unopened = known == Some(Opener::Unknown);
            self.unopened += u64::from(opener == Opener::Unknown);
            self.unopened -= u64::from(was_unopened);
            self.pairs.insert(pair, opener);
        }
        let from_opener = opener == Opener::Unknown || from_opener(opener);
        let from_guest = match named {
            Some((is_guest, is_peer)) if is_guest != is_peer => is_guest,
            _ => from_opener,
        };
        Some(Side::new(segment, from_guest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(from: &str, to: &str, opens: bool) -> Segment {
        let [from, to] = [from, to].map(|end| end.parse().expect("an end"));
        Segment { from, to, vlan: None, opens }
    }

    const A: &str = "10.0.0.1:40000";
    const B: &str = "10.0.0.2:80";

    #[test]
    fn the_opener_is_the_guest() {
        for (opener, other) in [(A, B), (B, A)] {
            let mut sides = Sides::default();
            let mut from_guest = |from, to, opens| {
                let side = sides.judge(&segment(from, to, opens), None, 9, |_| false);
                side.map(|side| (side.from_guest, side.key.guest().to_string()))
            };
            let opener = opener.to_owned();
            assert_eq!(from_guest(&opener, other, true), Some((true, opener.clone())));
            assert_eq!(from_guest(other, &opener, false), Some((false, opener.clone())));
            assert_eq!(from_guest(&opener, other, false), Some((true, opener.clone())));
            // A later connection between the same ends.
            assert_eq!(from_guest(other, &opener, true), Some((true, other.to_owned())));
            assert_eq!(sides.unopened(), 0);
        }
    }

    #[test]
    fn both_may_open_a_connection() {
        let mut sides = Sides::default();
        let mut judge = |from, to| sides.judge(&segment(from, to, true), None, 9, |_| true);
        assert_eq!(judge(A, B).map(|side| side.from_guest), Some(true));
        assert_eq!(judge(B, A).map(|side| side.from_guest), Some(false));
    }

    #[test]
    fn the_user_names_guests() {
        let mut sides = Sides::default();
        let is_guest = |end: SocketAddr| end.port() == 80;
        let mut judge = |from, to, opens| {
            let side = sides.judge(&segment(from, to, opens), Some(&is_guest), 9, |_| false);
            side.map(|side| side.from_guest)
        };
        assert_eq!(judge(A, B, true), Some(false));
        assert_eq!(judge(B, A, false), Some(true));
        assert_eq!(judge(A, "10.0.0.3:443", true), None);
        assert_eq!(judge("10.0.0.4:80", B, true), Some(true), "the opener of two guests");
        assert_eq!(judge(B, "10.0.0.4:80", false), Some(false));
    }

    #[test]
    fn connections_without_a_syn_are_counted_once() {
        let mut sides = Sides::default();
        for (from, to, opens, unopened) in [
            (A, B, false, 1),
            (B, A, false, 1),
            (A, "10.0.0.3:80", false, 2),
            (A, "10.0.0.4:80", false, 2),
            (A, B, true, 1),
            (A, B, false, 1),
        ] {
            let side = sides.judge(&segment(from, to, opens), None, 1, |_| false);
            assert!(side.is_some());
            assert_eq!(sides.unopened(), unopened, "{from} {to}");
        }
    }
}
