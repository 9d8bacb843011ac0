//! Payload, byte by byte.

use std::ops::Range;

use super::captured::Captured;
use super::face::ByFace;

/// Bytes of payload that are on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayloadCounts {
    pub equal_bytes: u64,
    pub different_bytes: u64,
    /// Either capture has cut them off.
    pub uncaptured_bytes: u64,
}

impl PayloadCounts {
    pub fn compared_bytes(&self) -> u64 {
        self.equal_bytes + self.different_bytes
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.equal_bytes += other.equal_bytes;
        self.different_bytes += other.different_bytes;
        self.uncaptured_bytes += other.uncaptured_bytes;
    }
}

/// The first byte that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DifferentByte {
    /// From the beginning of the guest's side's payload.
    pub at: u32,
    pub bytes: ByFace<u8>,
}

/// Compares the payload within ranges of sequence numbers of the same size, which are offsets from the
/// first number of each segment.
pub(crate) fn compare(
    segments: ByFace<&Captured>,
    ranges: &ByFace<Range<u32>>,
) -> (PayloadCounts, Option<DifferentByte>) {
    let guest = within_payload(segments.guest, &ranges.guest);
    let fabric = within_payload(segments.fabric, &ranges.fabric);
    let whole_bytes = (guest.end - guest.start).min(fabric.end - fabric.start);
    let guest_kept = kept(segments.guest, &guest, whole_bytes);
    let fabric_kept = kept(segments.fabric, &fabric, whole_bytes);
    let compared = guest_kept.len().min(fabric_kept.len());
    let (guest_kept, fabric_kept) = (&guest_kept[..compared], &fabric_kept[..compared]);
    let different_at = |at: &usize| guest_kept.get(*at) != fabric_kept.get(*at);
    let first = (guest_kept != fabric_kept).then(|| (0..compared).find(different_at)).flatten();
    let different = first.map_or(0, |first| (first..compared).filter(different_at).count());
    let counts = PayloadCounts {
        equal_bytes: (compared - different) as u64,
        different_bytes: different as u64,
        uncaptured_bytes: u64::from(whole_bytes) - compared as u64,
    };
    let byte = first.map(|at| DifferentByte {
        at: guest.start + at as u32,
        bytes: ByFace { guest: guest_kept[at], fabric: fabric_kept[at] },
    });
    (counts, byte)
}

/// Sequence numbers as offsets into the payload: without those of SYN and FIN.
fn within_payload(segment: &Captured, range: &Range<u32>) -> Range<u32> {
    let front = segment.front();
    let offset = |number: u32| number.saturating_sub(front).min(segment.payload_bytes);
    offset(range.start)..offset(range.end)
}

/// The part that was captured.
fn kept<'a>(segment: &'a Captured, range: &Range<u32>, bytes: u32) -> &'a [u8] {
    let end = segment.payload.len().min((range.start + bytes) as usize);
    segment.payload.get(range.start as usize..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::captured::{FIN, SYN};
    use super::super::testing::captured;
    use super::*;

    fn data(bytes: &[u8], kept: usize, flags: u16) -> Captured {
        captured(|it| {
            it.flags |= flags;
            it.payload_bytes = bytes.len() as u32;
            it.payload = bytes[..kept].to_vec();
        })
    }

    #[test]
    fn bytes_are_equal_different_or_unknown() {
        let guest = data(b"abcdefgh", 8, SYN | FIN);
        let fabric = data(b"bxdyf", 4, 0);
        let segments = ByFace { guest: &guest, fabric: &fabric };
        let ranges = ByFace { guest: 2..7, fabric: 0..5 };
        let (counts, byte) = compare(segments, &ranges);
        let expected = PayloadCounts { equal_bytes: 2, different_bytes: 2, uncaptured_bytes: 1 };
        assert_eq!(counts, expected);
        let bytes = ByFace { guest: b'c', fabric: b'x' };
        assert_eq!(byte, Some(DifferentByte { at: 2, bytes }));
    }

    #[test]
    fn syn_and_fin_are_no_payload() {
        let (guest, fabric) = (data(b"ab", 2, SYN | FIN), data(b"ab", 2, SYN | FIN));
        let segments = ByFace { guest: &guest, fabric: &fabric };
        let (counts, byte) = compare(segments, &ByFace { guest: 0..4, fabric: 0..4 });
        assert_eq!((counts.equal_bytes, counts.uncaptured_bytes, byte), (2, 0, None));
        let (counts, _) = compare(segments, &ByFace { guest: 0..1, fabric: 0..1 });
        assert_eq!(counts, PayloadCounts::default());
    }
}
