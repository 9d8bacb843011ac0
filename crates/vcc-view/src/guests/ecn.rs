//! The ECN of a guest on a connection.

use serde::Serialize;
use vcc_engine::{FlowState, Mode, Params, sys};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestEcn {
    /// It neither asks for ECN nor accepts it.
    None,
    /// It asked, and its peer declined.
    Refused,
    /// RFC 3168.
    Classic,
    /// RFC 9768.
    Accurate,
}

impl GuestEcn {
    /// None before the handshake is complete.
    pub fn from_state(state: &FlowState, params: &Params) -> Option<Self> {
        if u32::from(state.stage) < sys::STAGE_ESTABLISHED {
            return None;
        }
        // If vcc changes handshakes, vcc may have asked for ECN instead of the guest.
        let changes = [Mode::Enforce, Mode::Drain].map(Mode::number).contains(&params.0.mode);
        let asked = state.has(sys::FLOW_GUEST_OPENED) && state.has(sys::FLOW_ECN_ASKED);
        Some(if state.has(sys::FLOW_ACCECN_GUEST) {
            Self::Accurate
        } else if state.has(sys::FLOW_ECN_GUEST) {
            Self::Classic
        } else if asked && !changes {
            Self::Refused
        } else {
            Self::None
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Refused => "refused",
            Self::Classic => "classic",
            Self::Accurate => "accurate",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_that_asked_for_ecn_is_recognised() {
        let flow = |stage: u32, flags| {
            FlowState(sys::vcc_flow { stage: stage as u8, flags, ..Default::default() })
        };
        let of = |mode: Mode, flags| {
            let mut params = Params::default();
            params.0.mode = mode.number();
            GuestEcn::from_state(&flow(sys::STAGE_ESTABLISHED, flags), &params)
        };
        let asked = sys::FLOW_GUEST_OPENED | sys::FLOW_ECN_ASKED;
        for (mode, flags, expected) in [
            (Mode::Shadow, sys::FLOW_GUEST_OPENED, GuestEcn::None),
            (Mode::Shadow, asked, GuestEcn::Refused),
            (Mode::Enforce, asked, GuestEcn::None),
            (Mode::Shadow, sys::FLOW_ECN_ASKED, GuestEcn::None),
            (Mode::Enforce, asked | sys::FLOW_ECN_GUEST, GuestEcn::Classic),
            (Mode::Shadow, asked | sys::FLOW_ECN_GUEST, GuestEcn::Classic),
            (
                Mode::Shadow,
                asked | sys::FLOW_ECN_GUEST | sys::FLOW_ACCECN_GUEST,
                GuestEcn::Accurate,
            ),
        ] {
            assert_eq!(of(mode, flags), Some(expected), "{mode} {flags:#x}");
        }
        let opening = flow(sys::STAGE_SYN_SENT, asked);
        assert_eq!(GuestEcn::from_state(&opening, &Params::default()), None);
    }
}
