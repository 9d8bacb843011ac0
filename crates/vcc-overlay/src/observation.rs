//! An observation of a connection at one time.

/// Taken after an acknowledgement, or when a flow table is read. Counters are those of the whole
/// connection, so events between two observations are not lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// On any monotonic clock.
    pub at_us: u64,
    pub snd_una: u32,
    pub snd_nxt: u32,
    /// The flight just before the bytes acknowledged since the last observation. If acknowledgements are
    /// not observed one by one: at this observation.
    pub flight_bytes: u32,
    pub mss_bytes: u32,
    /// A round trip that ended with this acknowledgement, if it was timed.
    pub rtt_us: Option<u32>,
    /// SRTT (RFC 6298); 0 before the first sample.
    pub srtt_us: u32,
    /// Segments that the guest retransmitted, and segments on which it set CWR.
    pub retransmissions: u32,
    pub cwrs: u32,
    /// The window that the peer, or vcc on its behalf, shows; 0 if unknown.
    pub window_shown_bytes: u32,
}

/// The sample that moved SRTT from one value to the other, both times 8: RFC 6298, 2.3 solved for
/// R'. Two equal values give none.
pub fn rtt_between(before_us8: u32, after_us8: u32) -> Option<u32> {
    if after_us8 == before_us8 || after_us8 == 0 {
        return None;
    }
    if before_us8 == 0 {
        return Some(after_us8 / 8);
    }
    let sample = i64::from(after_us8) - i64::from(before_us8) + i64::from(before_us8 >> 3);
    u32::try_from(sample).ok().filter(|us| *us > 0)
}

/// Is sequence number `a` after `b` (RFC 9293, 3.4)?
pub(crate) fn is_after(a: u32, b: u32) -> bool {
    b.wrapping_sub(a) > 1 << 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_recovered_from_srtt() {
        let moved = |srtt_us8: u32, rtt_us: u32| srtt_us8 - (srtt_us8 >> 3) + rtt_us;
        for (srtt_us8, rtt_us) in [(8000, 1400), (8001, 1), (80_000, 9_000), (7, 30_000_000)] {
            assert_eq!(rtt_between(srtt_us8, moved(srtt_us8, rtt_us)), Some(rtt_us));
        }
        assert_eq!(rtt_between(0, 8 * 250), Some(250));
        assert_eq!(rtt_between(800, 800), None);
        // Two samples between two observations: no single sample explains the change.
        assert_eq!(rtt_between(80_000, 40_000), None);
    }

    #[test]
    fn sequence_numbers_wrap() {
        assert!(is_after(5, u32::MAX - 5) && !is_after(u32::MAX - 5, 5) && !is_after(7, 7));
    }
}
