//! A segment of a flow that another CPU holds is judged at least as strictly as by the engine.

use vcc_engine::{Action, FlowState, Params, Segment, sys};

/// Is `a` after `b` (RFC 9293, 3.4)?
fn is_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

/// What would have become of the segment, if another CPU had held the flow? `before` is the flow, and
/// `action` what the engine has made of the segment.
pub fn is_as_strict(
    before: &FlowState,
    params: &Params,
    segment: &Segment,
    to_guest: bool,
    action: &Action,
) {
    let unheld = before.unheld(params, segment, to_guest);
    let passes = u32::from(unheld.verdict) == sys::VCC_PASS;
    assert!(!passes || action.police == 0, "what is policed is policed there too: {segment:?}");
    let is_open = u32::from(before.stage) == sys::STAGE_ESTABLISHED;
    let is_amid = u32::from(segment.flags) & (sys::TCP_SYN | sys::TCP_RST) == 0;
    if !to_guest || !passes || !is_open || !is_amid || !before.is_managed() {
        return;
    }
    // As a guest reads the field.
    let shown = u32::from(unheld.window) << before.wscale_shown;
    let edge = segment.ack.wrapping_add(shown);
    let engines = segment.ack.wrapping_add(u32::from(action.window) << before.wscale_shown);
    let scale = 1u32 << before.wscale_shown;
    let known = [before.right_edge, before.snd_nxt, engines];
    assert!(
        known.iter().any(|known| !is_after(edge, known.wrapping_add(scale))),
        "no edge beyond what the guest may know: {segment:?}"
    );
}
