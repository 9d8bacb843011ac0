//! The part of a flow's state that `vcc-overlay` judges.

use vcc_engine::FlowState;
use vcc_overlay::{Observation, rtt_between};

/// `before` and `after` are the states right after two consecutive ACKs. Without `before`, as where the
/// state was read at any other time, the flight is the present one.
pub fn observation(at_us: u64, before: Option<&FlowState>, after: &FlowState) -> Observation {
    let acked_from = before.map_or(after.snd_una, |before| before.snd_una);
    Observation {
        at_us,
        snd_una: after.snd_una,
        snd_nxt: after.snd_nxt,
        flight_bytes: after.snd_nxt.wrapping_sub(acked_from),
        mss_bytes: after.mss_bytes.into(),
        rtt_us: before.and_then(|before| rtt_between(before.srtt_us8, after.srtt_us8)),
        srtt_us: after.srtt_us8 / 8,
        retransmissions: after.retransmissions,
        cwrs: after.guest_cwrs.into(),
        window_shown_bytes: after.window_shown_bytes().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use vcc_engine::sys;

    use super::*;

    fn state(snd_una: u32, snd_nxt: u32, srtt_us8: u32) -> FlowState {
        FlowState(sys::vcc_flow {
            snd_una,
            snd_nxt,
            srtt_us8,
            mss_bytes: 1440,
            ..Default::default()
        })
    }

    #[test]
    fn flight_is_that_before_the_acknowledgement() {
        let (before, after) = (state(u32::MAX - 999, 500, 8000), state(0, 1500, 7500));
        let observed = observation(5, Some(&before), &after);
        assert_eq!((observed.flight_bytes, observed.rtt_us), (2500, Some(500)));
        assert_eq!(observation(5, None, &after).flight_bytes, 1500);
        assert_eq!((observed.window_shown_bytes, observed.srtt_us), (0, 937));
    }
}
