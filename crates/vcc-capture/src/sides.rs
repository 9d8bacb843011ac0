//! Which end of each connection is the guest.

use std::collections::HashMap;
use std::net::SocketAddr;

use foldhash::fast::RandomState;
use vcc_engine::{FlowKey, sys};

use crate::segment::{Mac, Segment};

/// Two ends in order, and their VLAN.
type Pair = (SocketAddr, SocketAddr, Option<u16>);

/// Is an end a guest's, at this Ethernet address?
pub(crate) type IsGuest = dyn Fn(SocketAddr, Mac) -> bool + Send;

/// The connections of which any segment was seen, by their ends.
#[derive(Default)]
pub(crate) struct Sides {
    pairs: HashMap<Pair, Known, RandomState>,
    /// Those whose SYN was not seen.
    unopened: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Known {
    /// The first of the pair opened the connection.
    by_first: bool,
    /// The SYN was seen.
    is_opened: bool,
    /// A port knows it without its SYN.
    is_joined: bool,
    /// There is no room for it at a port.
    is_left_out: bool,
}

/// A segment's direction at the guest's port, and the key of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    pub from_guest: bool,
    pub from_opener: bool,
    /// The connection's SYN was not seen, and this is its first segment with data: without data, no segment
    /// shows whether the connection uses ECN (RFC 3168, 6.1.4).
    pub joins: bool,
    pub is_left_out: bool,
    pub key: FlowKey,
}

impl Side {
    /// With the other end as the guest.
    pub(crate) fn turned(self) -> Self {
        let key = FlowKey::new(self.key.peer(), self.key.guest(), self.key.vlan());
        Self { from_guest: !self.from_guest, key, ..self }
    }
}

impl Sides {
    /// The connections whose SYN was not seen.
    pub(crate) fn unopened(&self) -> u64 {
        self.unopened
    }

    /// The number of connections that are remembered.
    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Leaves the connection of a segment out. Was it not left out before?
    pub(crate) fn leave_out(&mut self, segment: &Segment) -> bool {
        let known = self.pairs.get_mut(&pair(segment));
        // One that is not remembered is counted by its SYNs.
        known.map_or(segment.opens(), |known| !std::mem::replace(&mut known.is_left_out, true))
    }

    /// Judges a segment. None: neither end is a guest. Its connection is remembered if `has_room`.
    /// `is_opening`: the port has a flow of this key in its handshake, so another SYN, of either end, is of
    /// the same connection (RFC 9293, 3.5: both ends may open it).
    ///
    /// Without a SYN, the end with the larger port counts as the opener, since services have small ports.
    pub(crate) fn judge(
        &mut self,
        segment: &Segment,
        is_guest: Option<&IsGuest>,
        has_room: bool,
        is_opening: impl Fn(&FlowKey) -> bool,
    ) -> Option<Side> {
        let Segment { from, to, vlan, macs: [from_mac, to_mac], .. } = *segment;
        let named = is_guest.map(|is_guest| (is_guest(from, from_mac), is_guest(to, to_mac)));
        if named == Some((false, false)) {
            return None;
        }
        let is_first = from <= to;
        let pair = pair(segment);
        let is_guest = |from_opener: bool| match named {
            Some((is_guest, is_peer)) if is_guest != is_peer => is_guest,
            _ => from_opener,
        };
        let key = |from_opener: bool| {
            let (guest, peer) = if is_guest(from_opener) { (from, to) } else { (to, from) };
            FlowKey::new(guest, peer, vlan)
        };
        let known = self.pairs.get(&pair).copied();
        let is_same = |known: &Known| {
            let is_known_syn = || known.is_opened && is_opening(&key(known.by_first == is_first));
            !segment.opens() || known.is_left_out || is_known_syn()
        };
        let mut now = known.filter(is_same).unwrap_or_else(|| {
            let by_sender = match (segment.opens(), segment.accepts()) {
                (true, _) => true,
                (_, true) => false,
                _ => (from.port(), is_first) > (to.port(), !is_first),
            };
            let (by_first, is_opened) = (by_sender == is_first, segment.opens());
            Known { by_first, is_opened, is_joined: false, is_left_out: false }
        });
        let is_kept = known.is_some() || has_room;
        let is_reset = segment.has(sys::TCP_RST);
        let can_join = is_kept && !now.is_opened && !now.is_joined && !now.is_left_out;
        let joins = can_join && segment.payload_bytes > 0 && segment.has(sys::TCP_ACK) && !is_reset;
        now.is_joined |= joins;
        if known != Some(now) && is_kept {
            let is_unopened =
                |known: Option<Known>| u64::from(known.is_some_and(|it| !it.is_opened));
            self.unopened += is_unopened(Some(now));
            self.unopened -= is_unopened(known);
            self.pairs.insert(pair, now);
        }
        let from_opener = now.by_first == is_first;
        let from_guest = is_guest(from_opener);
        let is_left_out = now.is_left_out;
        Some(Side { from_guest, from_opener, joins, is_left_out, key: key(from_opener) })
    }
}

fn pair(segment: &Segment) -> Pair {
    let Segment { from, to, vlan, .. } = *segment;
    if from <= to { (from, to, vlan) } else { (to, from, vlan) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(from: &str, to: &str, opens: bool) -> Segment {
        let [from, to] = [from, to].map(|end| end.parse().expect("an end"));
        let flags = if opens { sys::TCP_SYN } else { sys::TCP_ACK };
        let (vlan, seq, ack, payload_bytes, ip_ecn, macs) = Default::default();
        Segment { from, to, vlan, seq, ack, flags, payload_bytes, ip_ecn, macs }
    }

    const A: &str = "10.0.0.1:40000";
    const B: &str = "10.0.0.2:80";

    #[test]
    fn the_opener_is_the_guest() {
        for (opener, other) in [(A, B), (B, A)] {
            let mut sides = Sides::default();
            let mut from_guest = |from, to, opens| {
                let side = sides.judge(&segment(from, to, opens), None, true, |_| false);
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
        let mut judge = |from, to| sides.judge(&segment(from, to, true), None, true, |_| true);
        assert_eq!(judge(A, B).map(|side| side.from_guest), Some(true));
        assert_eq!(judge(B, A).map(|side| side.from_guest), Some(false));
    }

    #[test]
    fn the_user_names_guests() {
        let mut sides = Sides::default();
        let is_guest = |end: SocketAddr, _: Mac| end.port() == 80;
        let mut judge = |from, to, opens| {
            let side = sides.judge(&segment(from, to, opens), Some(&is_guest), true, |_| false);
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
            let has_room = sides.len() < 2;
            let side = sides.judge(&segment(from, to, opens), None, has_room, |_| false);
            assert!(side.is_some());
            assert_eq!(sides.unopened(), unopened, "{from} {to}");
        }
    }

    #[test]
    fn without_a_syn_the_larger_port_or_the_syn_ack_shows_the_opener() {
        let mut sides = Sides::default();
        let mut judge = |segment: &Segment| {
            let side = sides.judge(segment, None, true, |_| false).expect("a guest");
            (side.from_guest, side.joins, side.key.guest().to_string())
        };
        assert_eq!(judge(&segment(B, A, false)), (false, false, A.to_owned()), "no data");
        let with_data = Segment { payload_bytes: 1, ..segment(B, A, false) };
        assert_eq!(judge(&with_data), (false, true, A.to_owned()));
        assert_eq!(judge(&with_data), (false, false, A.to_owned()), "it has joined");
        assert_eq!(judge(&segment(A, B, false)), (true, false, A.to_owned()));
        const C: &str = "10.0.0.1:90";
        let syn_ack = Segment { flags: sys::TCP_SYN | sys::TCP_ACK, ..segment(A, C, false) };
        assert_eq!(judge(&syn_ack), (false, false, C.to_owned()));
        let (d, e) = ("10.0.0.1:5000", "10.0.0.2:5000");
        let first = judge(&segment(e, d, false)).2;
        assert_eq!(judge(&segment(d, e, false)).2, first, "the same in both directions");
    }

    #[test]
    fn a_connection_is_left_out_once() {
        let mut sides = Sides::default();
        let syn = segment(A, B, true);
        let is_left_out = |sides: &mut Sides| {
            sides.judge(&syn, None, true, |_| true).expect("a guest").is_left_out
        };
        assert!(!is_left_out(&mut sides));
        assert!(sides.leave_out(&syn) && !sides.leave_out(&syn));
        assert!(is_left_out(&mut sides));
    }
}
