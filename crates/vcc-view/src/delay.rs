//! The two parts of a connection's round trips, in words; the engine measures them.

use vcc_engine::{DelayedBy, FlowState};

use crate::FlowView;
use crate::units::duration;

pub fn text(state: &FlowState) -> Option<String> {
    let by = state.delayed_by()?;
    let guest = part("the guest answers after", state.guest_delay_us(), state.guest_worst_us());
    let fabric = part("the fabric after", state.fabric_delay_us(), state.fabric_worst_us());
    let reason = match by {
        DelayedBy::Guest => "slow because the guest is not running, or busy: ",
        DelayedBy::Fabric => "by the fabric or the peer: ",
        DelayedBy::Both => "by the guest and by the fabric: ",
        DelayedBy::Neither => "by neither: ",
    };
    let parts: Vec<String> = [guest, fabric].into_iter().flatten().collect();
    Some(format!("{reason}{}", parts.join(", ")))
}

/// Does the guest delay the connection?
pub fn is_guests(flow: &FlowView) -> bool {
    matches!(flow.state.delayed_by(), Some(DelayedBy::Guest | DelayedBy::Both))
}

fn part(what: &str, delay_us: Option<u32>, worst_us: Option<u32>) -> Option<String> {
    let delay = duration(delay_us?.into());
    let worst = duration(worst_us?.into());
    Some(format!("{what} {delay} (at most {worst})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vcc_engine::sys;

    fn text_of(guest_us: u32, fabric_us: u32) -> Option<String> {
        text(&FlowState(sys::vcc_flow {
            guest_us64: guest_us * 64,
            guest_worst_us: 2 * guest_us,
            fabric_us64: fabric_us * 64,
            fabric_worst_us: 2 * fabric_us,
            ..Default::default()
        }))
    }

    #[test]
    fn the_parts_that_were_measured_are_named() {
        assert_eq!(text_of(0, 0), None);
        assert_eq!(
            text_of(31_000, 200).unwrap(),
            "slow because the guest is not running, or busy: the guest answers after 31.0 ms (at most \
             62.0 ms), the fabric after 200 us (at most 400 us)"
        );
        assert_eq!(
            text_of(0, 80_000).unwrap(),
            "by the fabric or the peer: the fabric after 80.0 ms (at most 160 ms)"
        );
    }
}
