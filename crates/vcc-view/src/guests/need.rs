//! Whether a guest needs translation.

use serde::Serialize;
use vcc_overlay::Class;

use super::ecn::GuestEcn;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    Yes,
    No,
    /// It depends on something unknown, or on the operator.
    Perhaps,
}

impl Need {
    pub fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Perhaps => "perhaps",
        }
    }
}

/// By the ECN and the class of all connections of a guest.
pub fn need(ecn: &[GuestEcn], class: Class) -> (Need, &'static str) {
    if ecn.is_empty() {
        return (Need::Perhaps, "no handshake was seen");
    }
    if class == Class::Unlimited {
        return (Need::Yes, "it never reduces its window: only the receive window limits it");
    }
    if ecn.contains(&GuestEcn::None) {
        return (Need::Yes, "it has no ECN: its packets are dropped where others are marked");
    }
    if ecn.contains(&GuestEcn::Refused) {
        return (Need::Perhaps, "its peer declined ECN: vcc would depend on losses as well");
    }
    match class {
        Class::DelayBased => {
            (Need::Perhaps, "it has ECN, but responds to delay: it may not respond to marks")
        }
        Class::Unknown => (Need::Perhaps, "it has ECN; no response to marks was seen"),
        _ => (Need::No, "it has ECN and responds to marks itself"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_ecn_and_answers_needs_nothing() {
        use GuestEcn::{Accurate, Classic, None, Refused};
        for (ecn, class, expected) in [
            (&[][..], Class::CubicLike, Need::Perhaps),
            (&[None], Class::Unknown, Need::Yes),
            (&[None, Classic], Class::RenoLike, Need::Yes),
            (&[Refused], Class::RenoLike, Need::Perhaps),
            (&[Classic], Class::CubicLike, Need::No),
            (&[Accurate], Class::RenoLike, Need::No),
            (&[Classic], Class::DelayBased, Need::Perhaps),
            (&[Classic], Class::Unknown, Need::Perhaps),
            (&[Accurate], Class::Unlimited, Need::Yes),
        ] {
            assert_eq!(need(ecn, class).0, expected, "{ecn:?} {class}");
        }
    }
}
