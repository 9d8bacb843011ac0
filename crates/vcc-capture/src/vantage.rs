//! The vantage point: the place on the path at which packets were captured, by the handshakes of their
//! connections.

use crate::handshake::Handshake;

/// A part of the round trip that is small.
const NEAR: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vantage {
    pub point: Point,
    /// The guests' part of the round trip, from 0 to 1: the median over connections.
    pub guest_part: f64,
    /// The connections whose handshake shows it.
    pub shown_by: usize,
    /// Of these, those whose own part leads to the same point.
    pub agreeing: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    Guest,
    Between,
    Peer,
}

impl Point {
    pub fn name(self) -> &'static str {
        match self {
            Self::Guest => "guest",
            Self::Between => "between",
            Self::Peer => "peer",
        }
    }

    fn from_part(guest_part: f64) -> Self {
        if guest_part <= NEAR {
            Self::Guest
        } else if guest_part >= 1.0 - NEAR {
            Self::Peer
        } else {
            Self::Between
        }
    }
}

impl Vantage {
    /// None if no handshake shows it.
    pub fn from_handshakes<'a>(handshakes: impl Iterator<Item = &'a Handshake>) -> Option<Self> {
        let mut parts: Vec<f64> = handshakes.filter_map(Handshake::guest_part).collect();
        parts.sort_by(f64::total_cmp);
        let guest_part = *parts.get(parts.len() / 2)?;
        let point = Point::from_part(guest_part);
        let agreeing = parts.iter().filter(|part| Point::from_part(**part) == point).count();
        Some(Self { point, guest_part, shown_by: parts.len(), agreeing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vantage(times_ns: &[(u64, u64)]) -> Option<Vantage> {
        let handshake = |&(guest_ns, peer_ns): &(u64, u64)| {
            let mut handshake = Handshake::default();
            (handshake.guest_ns, handshake.peer_ns) = (Some(guest_ns), Some(peer_ns));
            handshake
        };
        let handshakes: Vec<Handshake> = times_ns.iter().map(handshake).collect();
        Vantage::from_handshakes(handshakes.iter().chain([&Handshake::default()]))
    }

    #[test]
    fn the_median_counts() {
        let found = vantage(&[(5, 95), (1, 99), (50, 50)]).expect("a vantage point");
        assert_eq!((found.point, found.guest_part), (Point::Guest, 0.05));
        assert_eq!((found.shown_by, found.agreeing), (3, 2));
        assert_eq!(vantage(&[(99, 1)]).map(|it| it.point), Some(Point::Peer));
        assert_eq!(vantage(&[(20, 80)]).map(|it| it.point), Some(Point::Between));
        assert_eq!(vantage(&[]), None);
        assert_eq!(vantage(&[(0, 0)]), None, "both ends are here");
    }
}
