//! Deadlines of flows, by the datapath's rules (datapath/wheel.h).

use vcc_engine::{FlowState, Params, sys};

pub(crate) const NS_PER_MS: u64 = 1_000_000;

/// Minimum interval between two deadlines of a flow without emission.
pub(crate) const LOOK_MIN_MS: u32 = sys::LOOK_MIN_MS;

pub(crate) fn after_ms(now_ns: u64, ms: u32) -> u64 {
    now_ns.saturating_add(u64::from(ms) * NS_PER_MS)
}

/// Time until the flow's next deadline, if the engine asks for `deadline_ms`.
pub(crate) fn next_look_ms(params: &Params, deadline_ms: u32) -> u32 {
    deadline_ms.max(if params.0.emit != 0 { sys::EMIT_LOOK_MIN_MS } else { LOOK_MIN_MS })
}

/// After a segment: a new deadline if the flow's current one, `look_ns`, is too late now.
#[inline]
pub(crate) fn sooner_ns(
    flow: &FlowState,
    params: &Params,
    now_ns: u64,
    look_ns: u64,
) -> Option<u64> {
    // Even if the engine asks for less, it is not looked at sooner than that.
    if look_ns <= after_ms(now_ns, next_look_ms(params, 0)) {
        return None;
    }
    let within_ms = flow.look_within_ms(params);
    let late_ns = after_ms(now_ns, next_look_ms(params, within_ms));
    (look_ns > late_ns).then(|| after_ms(now_ns, within_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(emit: bool) -> Params {
        Params(sys::vcc_params { emit: emit.into(), ..Params::default().0 })
    }

    fn flow(stage: sys::vcc_stage, flight_bytes: u32) -> FlowState {
        let underlay = Params::default().0.underlay;
        let stage = stage as u8;
        FlowState(sys::vcc_flow { stage, underlay, snd_nxt: flight_bytes, ..Default::default() })
    }

    #[test]
    fn deadlines_are_exact_only_with_emission() {
        let next = |emit| [0, 7, 5000].map(|ms| next_look_ms(&params(emit), ms));
        assert_eq!(next(false), [1000, 1000, 5000]);
        assert_eq!(next(true), [1, 7, 5000]);
    }

    #[test]
    fn data_in_flight_and_a_close_bring_the_deadline_forward() {
        let far_ns = after_ms(0, 100_000_000);
        let sooner = |flow: FlowState, emit| sooner_ns(&flow, &params(emit), 0, far_ns);
        let idle = flow(sys::STAGE_ESTABLISHED, 0);
        let sending = flow(sys::STAGE_ESTABLISHED, 1);
        let closed = flow(sys::STAGE_CLOSED, 0);
        assert_eq!(sooner(idle, false), None);
        assert_eq!(sooner(sending, false), Some(after_ms(0, 1000)));
        assert_eq!(sooner(sending, true), Some(after_ms(0, 11)));
        assert_eq!(sooner(closed, false), Some(after_ms(0, 10_000)));
        // A deadline that is near enough is kept.
        assert_eq!(sooner_ns(&sending, &params(false), 0, after_ms(0, 1000)), None);
        assert_eq!(sooner_ns(&sending, &params(true), 0, after_ms(0, 11)), None);
    }
}
