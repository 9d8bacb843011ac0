//! A connection of both files.

use std::net::SocketAddr;

use super::captured::{ACK, Captured, SYN};
use super::counts::Counts;
use super::face::{ByFace, Direction, Face};
use super::lane::Lane;
use super::room::LaneKey;
use crate::segment::Segment;

/// Two ends in order.
pub(crate) type Ends = (SocketAddr, SocketAddr);

/// The window scale of a SYN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Scale {
    /// The SYN is not in the file.
    #[default]
    Unknown,
    Absent,
    Of(u8),
}

/// Later connections between the same ends are the same one.
pub(crate) struct Watched {
    pub ends: Ends,
    /// None: no segment of the side was seen.
    vlans: ByFace<Option<Option<u16>>>,
    guest_is_first: bool,
    pub has_syn: bool,
    /// The user has named the guest.
    is_named: bool,
    /// Of the first end and of the second.
    scales: ByFace<[Scale; 2]>,
    /// Of the first end's segments and of the second's.
    lanes: [Lane; 2],
    pub counts: Counts,
}

/// The ends of a segment in order, and whether its sender is the first of them.
pub(crate) fn ends(segment: &Segment) -> (Ends, bool) {
    let Segment { from, to, .. } = *segment;
    if from <= to { ((from, to), true) } else { ((to, from), false) }
}

impl Watched {
    /// `named`: whether the user has named each end as a guest's.
    pub(crate) fn new(connection: usize, ends: Ends, named: Option<[bool; 2]>) -> Self {
        let lane = |from_first| Lane::new(LaneKey { connection, from_first });
        let is_named = named.is_some_and(|[first, second]| first != second);
        // A client's port is mostly the larger one.
        let guest_is_first = match named {
            Some([first, second]) if first != second => first,
            _ => ends.0.port() >= ends.1.port(),
        };
        let (vlans, scales, counts) = Default::default();
        let lanes = [lane(true), lane(false)];
        Self { ends, vlans, guest_is_first, has_syn: false, is_named, scales, lanes, counts }
    }

    pub(crate) fn lane(&mut self, key: LaneKey) -> &mut Lane {
        &mut self.lanes[usize::from(!key.from_first)]
    }

    pub(crate) fn lane_and_counts(&mut self, key: LaneKey) -> (&mut Lane, &mut Counts) {
        (&mut self.lanes[usize::from(!key.from_first)], &mut self.counts)
    }

    pub(crate) fn guest_and_peer(&self) -> (SocketAddr, SocketAddr) {
        let (first, second) = self.ends;
        if self.guest_is_first { (first, second) } else { (second, first) }
    }

    pub(crate) fn direction(&self, from_first: bool) -> Direction {
        match from_first == self.guest_is_first {
            true => Direction::FromGuest,
            false => Direction::ToGuest,
        }
    }

    /// May a segment with this tag be one of the connection's? A side without tags is compared with any.
    pub(crate) fn has_vlan(&self, face: Face, vlan: Option<u16>) -> bool {
        let is_like = |other: Option<u16>| other.is_none() || vlan.is_none() || other == vlan;
        match self.vlans[face] {
            Some(own) => own == vlan,
            None => self.vlans[face.other()].is_none_or(is_like),
        }
    }

    /// Learns from a segment, and completes it.
    pub(crate) fn note(
        &mut self,
        face: Face,
        from_first: bool,
        segment: &mut Captured,
        vlan: Option<u16>,
    ) {
        self.vlans[face] = Some(vlan);
        self.counts.segments[face] += 1;
        let own = usize::from(!from_first);
        if segment.has(SYN) {
            let scale = segment.options.scale();
            self.scales[face][own] = scale.map_or(Scale::Absent, Scale::Of);
            segment.scale = Some(0);
            self.note_opener(from_first != segment.has(ACK));
            return;
        }
        segment.scale = match (self.scales[face][own], self.scales[face][1 - own]) {
            (Scale::Unknown, _) | (_, Scale::Unknown) => None,
            (Scale::Of(scale), Scale::Of(_)) => Some(scale),
            // It takes effect if both have it (RFC 7323, 2.2).
            _ => Some(0),
        };
    }

    fn note_opener(&mut self, is_first: bool) {
        if !self.has_syn && !self.is_named {
            self.guest_is_first = is_first;
        }
        self.has_syn = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(named: Option<[bool; 2]>) -> Watched {
        let ends = ["10.0.0.1:80", "10.0.0.2:40000"].map(|end| end.parse().expect("an end"));
        Watched::new(0, (ends[0], ends[1]), named)
    }

    #[test]
    fn the_guest_is_named_or_opens_or_has_the_larger_port() {
        let guest_port = |watched: &Watched| watched.guest_and_peer().0.port();
        let mut unknown = watched(None);
        assert_eq!(guest_port(&unknown), 40_000);
        unknown.note_opener(true);
        assert_eq!(guest_port(&unknown), 80);
        unknown.note_opener(false);
        assert_eq!(guest_port(&unknown), 80, "the first SYN decides");
        let mut named = watched(Some([true, false]));
        named.note_opener(false);
        assert_eq!(guest_port(&named), 80);
        let mut both = watched(Some([true, true]));
        both.note_opener(false);
        assert_eq!(guest_port(&both), 40_000);
    }

    #[test]
    fn a_tag_on_one_side_alone_is_ignored() {
        let mut watched = watched(None);
        assert!(watched.has_vlan(Face::Guest, Some(7)));
        watched.vlans.fabric = Some(Some(7));
        assert!(watched.has_vlan(Face::Guest, None) && watched.has_vlan(Face::Guest, Some(7)));
        assert!(!watched.has_vlan(Face::Guest, Some(8)) && !watched.has_vlan(Face::Fabric, None));
    }
}
