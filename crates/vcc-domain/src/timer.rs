//! When a flow is looked at: the datapath's rule (`flow_tick`), which spares it timers.

use vcc_engine::{FlowState, Params, Segment, sys};

const NS_PER_MS: u64 = 1_000_000;
const TIMER_IS_NEAR: u8 = sys::SHELL_TIMER_IS_NEAR as u8;

/// A flow is not looked at more often: it is for expiry, and for timeouts that nothing else tells
/// of.
pub(crate) const TICK_MIN_MS: u32 = 1000;
/// But where it makes segments for the guest, it must be in time.
const EMIT_TICK_MIN_MS: u32 = 1;

pub(crate) fn after_ms(now_ns: u64, ms: u32) -> u64 {
    now_ns.saturating_add(u64::from(ms) * NS_PER_MS)
}

/// The flow was looked at, and the engine wants that again in `deadline_ms`. In how many ms it is.
pub(crate) fn next_tick_ms(flow: &mut FlowState, params: &Params, deadline_ms: u32) -> u32 {
    let emits = params.0.emit != 0;
    let near = emits && deadline_ms < TICK_MIN_MS;
    flow.0.shell &= !TIMER_IS_NEAR;
    flow.0.shell |= if near { TIMER_IS_NEAR } else { 0 };
    match emits {
        true => deadline_ms.clamp(EMIT_TICK_MIN_MS, TICK_MIN_MS),
        false => deadline_ms.max(TICK_MIN_MS),
    }
}

/// A segment of the guest passed. With data under way, a timeout that makes segments for the guest
/// may come soon: in how many ms to look, unless that is so already.
pub(crate) fn near_tick_ms(
    flow: &mut FlowState,
    params: &Params,
    from_guest: &Segment,
) -> Option<u32> {
    if params.0.emit == 0 || flow.shell & TIMER_IS_NEAR != 0 || from_guest.payload_bytes == 0 {
        return None;
    }
    flow.0.shell |= TIMER_IS_NEAR;
    Some(params.0.emit_after_us / 1000 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(emit: bool) -> Params {
        Params(sys::vcc_params { emit: emit.into(), ..Params::default().0 })
    }

    #[test]
    fn seldom_without_emission_and_in_time_with_it() {
        let mut flow = FlowState::default();
        let mut next = |emit, deadline_ms| {
            let ms = next_tick_ms(&mut flow, &params(emit), deadline_ms);
            (ms, flow.shell)
        };
        assert_eq!(
            [next(false, 3), next(false, 1000), next(false, 5000)],
            [(1000, 0), (1000, 0), (5000, 0)]
        );
        assert_eq!([next(true, 0), next(true, 7), next(true, 5000)], [(1, 1), (7, 1), (1000, 0)]);
    }

    #[test]
    fn data_brings_the_next_look_near_once() {
        let mut flow = FlowState::default();
        let data = Segment { payload_bytes: 1, ..Segment::default() };
        let ack = Segment::default();
        assert_eq!(near_tick_ms(&mut flow, &params(false), &data), None);
        assert_eq!(near_tick_ms(&mut flow, &params(true), &ack), None);
        assert_eq!(near_tick_ms(&mut flow, &params(true), &data), Some(11));
        assert_eq!(near_tick_ms(&mut flow, &params(true), &data), None);
    }
}
