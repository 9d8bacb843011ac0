//! Which segments of the two sides are the same one.

use super::captured::*;

/// A segment's neighbour, by which a segment is recognised that has changed itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbour {
    edge: u32,
    ack: u32,
    timestamps: Option<[u32; 2]>,
}

impl Neighbour {
    /// A super-segment and its last part end alike.
    pub(crate) fn before(segment: &Captured) -> Self {
        let edge = segment.seq.wrapping_add(segment.numbers());
        Self { edge, ack: segment.ack, timestamps: segment.timestamps }
    }

    /// A super-segment and its first part begin alike.
    pub(crate) fn behind(segment: &Captured) -> Self {
        Self { edge: segment.seq, ack: segment.ack, timestamps: segment.timestamps }
    }
}

/// Is all alike by which a segment is known? The parts of a super-segment have its acknowledgement and
/// timestamps. Whether the sequence numbers of two segments overlap is compared elsewhere.
pub(crate) fn is_alike(one: &Captured, other: &Captured) -> bool {
    let flags = if one.is_empty() { FIN | SYN | RST | ACK } else { SYN | RST | ACK };
    one.is_empty() == other.is_empty()
        && one.ack == other.ack
        && one.timestamps == other.timestamps
        && one.flags & flags == other.flags & flags
        && (!one.is_empty() || one.seq == other.seq)
}

/// Linux numbers the packets of a connection, so that two that are else alike differ.
pub(crate) fn has_same_id(one: &Captured, other: &Captured) -> bool {
    one.ip.ipv4_id == other.ip.ipv4_id
}

/// The same, where it is a number at all.
pub(crate) fn is_identified(one: &Captured, other: &Captured) -> bool {
    has_same_id(one, other) && one.ip.ipv4_id.is_some_and(|id| id != 0)
}

/// May the two have the same bytes, if their sequence numbers overlap?
pub(crate) fn is_copy(one: &Captured, other: &Captured) -> bool {
    one.flags & (SYN | RST) == other.flags & (SYN | RST) && !one.is_empty() && !other.is_empty()
}

/// Is all but one alike: the place in sequence space, the acknowledgement, the timestamps, or the flags?
pub(crate) fn is_nearly_alike(one: &Captured, other: &Captured) -> bool {
    let flags = FIN | SYN | RST | ACK;
    let differ = [
        one.seq != other.seq,
        one.ack != other.ack,
        one.timestamps != other.timestamps,
        one.flags & flags != other.flags & flags,
    ];
    one.payload_bytes == other.payload_bytes
        && has_same_id(one, other)
        && differ.into_iter().filter(|differs| *differs).count() == 1
        // Other payload elsewhere is another segment.
        && (one.seq == other.seq || is_same_payload(one, other))
        // vcc sends such segments itself, and they have no counterpart.
        && !one.options.has_fack()
        && !other.options.has_fack()
}

fn is_same_payload(one: &Captured, other: &Captured) -> bool {
    let compared = one.payload.len().min(other.payload.len());
    one.payload[..compared] == other.payload[..compared]
}

#[cfg(test)]
mod tests {
    use super::super::testing::captured;
    use super::*;

    #[test]
    fn one_difference_is_nearly_alike() {
        let one = captured(|it| it.seq = 7);
        assert!(is_alike(&one, &one) && !is_nearly_alike(&one, &one));
        for change in [
            |it: &mut Captured| it.seq = 8,
            |it: &mut Captured| it.ack = 8,
            |it: &mut Captured| it.flags |= RST,
            |it: &mut Captured| it.timestamps = Some([1, 2]),
        ] {
            let other = captured(|it| {
                it.seq = 7;
                change(it);
            });
            assert!(!is_alike(&one, &other) && is_nearly_alike(&one, &other), "{other:?}");
            let third = captured(|it| {
                it.seq = 7;
                change(it);
                it.ip.ipv4_id = Some(9);
            });
            assert!(!is_nearly_alike(&one, &third), "{third:?}");
        }
        let two = captured(|it| (it.seq, it.ack) = (8, 8));
        assert!(!is_nearly_alike(&one, &two));
    }

    #[test]
    fn payload_elsewhere_is_another_segment() {
        let data = |seq, byte: u8| {
            captured(|it| {
                (it.seq, it.payload_bytes) = (seq, 4);
                it.payload = vec![byte; 4];
            })
        };
        assert!(is_nearly_alike(&data(7, 1), &data(8, 1)));
        assert!(!is_nearly_alike(&data(7, 1), &data(8, 2)));
        assert!(is_alike(&data(7, 1), &data(9, 2)), "their places are compared elsewhere");
    }
}
