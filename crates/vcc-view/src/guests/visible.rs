//! Whether a guest's congestion control is visible at its port.

use vcc_engine::{Act, FlowState, Mode, Params};
use vcc_overlay::{Class, Guess};

/// The guess, unless the port keeps what the guest sends: it leaves by the underlay's congestion control
/// then.
pub fn visible(state: &FlowState, params: &Params, guess: impl FnOnce() -> Guess) -> Guess {
    let is_enforced = params.0.mode == Mode::Enforce.number();
    let act = Act::from_number(params.0.act).filter(|act| *act != Act::Window);
    match act.filter(|_| is_enforced && state.is_managed()) {
        None => guess(),
        Some(act) => Guess { class: Class::Unknown, confidence: 0.0, reasons: reasons(act) },
    }
}

fn reasons(act: Act) -> Vec<String> {
    let hidden = format!(
        "its data leaves by the underlay (`act = \"{}\"`): try a rule with `mode = \"shadow\"`",
        act.name()
    );
    let needs = "with Reno or CUBIC, it gains nothing from `hold` in slow start: install vcc-guest in it, or \
                 use `act = \"split\"`";
    let needs = (act == Act::Hold).then(|| needs.to_owned());
    [hidden].into_iter().chain(needs).collect()
}

#[cfg(test)]
mod tests {
    use vcc_engine::sys;

    use super::*;

    #[test]
    fn what_leaves_by_the_underlay_is_no_guests_own() {
        let seen = || Guess { class: Class::RenoLike, confidence: 0.9, reasons: Vec::new() };
        let guess = |act, mode: Mode, flags| {
            let params = Params::with(|params| (params.act, params.mode) = (act, mode.number()));
            let stage = sys::STAGE_ESTABLISHED as u8;
            let underlay = params.0.underlay;
            let state = FlowState(sys::vcc_flow { stage, flags, underlay, ..Default::default() });
            visible(&state, &params, seen)
        };
        let [window, hold, split] =
            [sys::ACT_WINDOW, sys::ACT_HOLD, sys::ACT_SPLIT].map(|act| act as u8);
        for (act, mode, flags, expected) in [
            (window, Mode::Enforce, 0, Class::RenoLike),
            (hold, Mode::Enforce, 0, Class::Unknown),
            (split, Mode::Enforce, 0, Class::Unknown),
            (split, Mode::Shadow, 0, Class::RenoLike),
            (hold, Mode::Enforce, sys::FLOW_LEFT_ALONE, Class::RenoLike),
        ] {
            let guess = guess(act, mode, flags);
            assert_eq!(guess.class, expected, "{act} {mode} {flags:#x}");
            let needs = guess.reasons.iter().any(|reason| reason.contains("vcc-guest"));
            assert_eq!(needs, act == hold && expected == Class::Unknown);
        }
    }
}
