//! Which file's packet comes next.

use super::face::{ByFace, Face};

/// The clocks of the two captures may differ. What they differ by is learned from segments that are in
/// both files.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Order {
    /// Of the fabric's side, ahead of the guest's.
    offset_ns: i128,
}

impl Order {
    pub(crate) fn note(&mut self, times_ns: ByFace<u64>) {
        self.offset_ns = i128::from(times_ns.fabric) - i128::from(times_ns.guest);
    }

    /// The file to read from; None: both have ended. If the room of a side is full, its segments wait for
    /// those of the other.
    pub(crate) fn next(
        self,
        times_ns: ByFace<Option<u64>>,
        is_full: impl Fn(Face) -> bool,
    ) -> Option<Face> {
        let (guest_ns, fabric_ns) = match (times_ns.guest, times_ns.fabric) {
            (Some(guest_ns), Some(fabric_ns)) => (guest_ns, fabric_ns),
            (None, fabric_ns) => return fabric_ns.map(|_| Face::Fabric),
            (Some(_), None) => return Some(Face::Guest),
        };
        let is_guest_first = i128::from(guest_ns) + self.offset_ns <= fabric_ns.into();
        let earlier = if is_guest_first { Face::Guest } else { Face::Fabric };
        let waits = is_full(earlier) && !is_full(earlier.other());
        Some(if waits { earlier.other() } else { earlier })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_packet_comes_first() {
        let mut order = Order::default();
        let next = |order: Order, guest, fabric| order.next(ByFace { guest, fabric }, |_| false);
        assert_eq!(next(order, Some(5), Some(6)), Some(Face::Guest));
        assert_eq!(next(order, Some(7), Some(6)), Some(Face::Fabric));
        assert_eq!(next(order, None, Some(6)), Some(Face::Fabric));
        assert_eq!(next(order, Some(7), None), Some(Face::Guest));
        assert_eq!(next(order, None, None), None);
        order.note(ByFace { guest: 1000, fabric: 10 });
        assert_eq!(next(order, Some(1005), Some(16)), Some(Face::Guest));
        assert_eq!(next(order, Some(1005), Some(14)), Some(Face::Fabric));
    }

    #[test]
    fn a_full_side_waits() {
        let times = ByFace { guest: Some(1), fabric: Some(9) };
        let next = |full: &[Face]| Order::default().next(times, |face| full.contains(&face));
        assert_eq!(next(&[Face::Guest]), Some(Face::Fabric));
        assert_eq!(next(&[Face::Fabric]), Some(Face::Guest));
        assert_eq!(next(&Face::BOTH), Some(Face::Guest));
    }
}
