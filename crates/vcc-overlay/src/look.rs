//! What is seen of a connection at one time.

/// After an acknowledgement, or whenever a flow table was read. Counters are those of the whole
/// connection, so that what comes too fast to be seen is not lost to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Of any clock that does not run back.
    pub at_us: u64,
    pub snd_una: u32,
    pub snd_nxt: u32,
    /// Right before what was acknowledged since the last look. Where acknowledgements are not seen one
    /// by one: at this look.
    pub flight_bytes: u32,
    pub mss_bytes: u32,
    /// A round trip that this acknowledgement ended, if it was timed.
    pub rtt_us: Option<u32>,
    /// The smoothed round trip (RFC 6298); 0: there is none yet.
    pub srtt_us: u32,
    /// Segments that the guest sent again, and on which it set CWR.
    pub retransmissions: u32,
    pub cwrs: u32,
    /// What the peer, or vcc in its place, lets it have in flight; 0: not known.
    pub window_shown_bytes: u32,
}

/// The sample that took a smoothed round trip from the one to the other, both times 8: RFC 6298, 2.3
/// solved for R'. Two equal ones say nothing.
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

/// Whether sequence number `a` lies beyond `b` (RFC 9293, 3.4).
pub(crate) fn is_after(a: u32, b: u32) -> bool {
    b.wrapping_sub(a) > 1 << 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_what_the_mean_was_moved_by() {
        let moved = |srtt_us8: u32, rtt_us: u32| srtt_us8 - (srtt_us8 >> 3) + rtt_us;
        for (srtt_us8, rtt_us) in [(8000, 1400), (8001, 1), (80_000, 9_000), (7, 30_000_000)] {
            assert_eq!(rtt_between(srtt_us8, moved(srtt_us8, rtt_us)), Some(rtt_us));
        }
        assert_eq!(rtt_between(0, 8 * 250), Some(250));
        assert_eq!(rtt_between(800, 800), None);
        // Two samples between two looks: no one sample explains it.
        assert_eq!(rtt_between(80_000, 40_000), None);
    }

    #[test]
    fn sequence_numbers_go_round() {
        assert!(is_after(5, u32::MAX - 5) && !is_after(u32::MAX - 5, 5) && !is_after(7, 7));
    }
}
