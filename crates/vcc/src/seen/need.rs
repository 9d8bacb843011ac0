//! Whether a guest is one of those that translation is for.

use serde::Serialize;
use vcc_overlay::Class;

use super::guest_ecn::GuestEcn;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    Yes,
    No,
    /// It depends on what is not known, or on the operator.
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

/// By what a guest has on any of its connections.
pub fn need(ecn: &[GuestEcn], class: Class) -> (Need, &'static str) {
    if ecn.is_empty() {
        return (Need::Perhaps, "no handshake was seen");
    }
    if class == Class::Unlimited {
        return (Need::Yes, "it reduces for nothing: only the window that it is shown limits it");
    }
    if ecn.contains(&GuestEcn::None) {
        return (Need::Yes, "it has no ECN, and is dropped where others are marked");
    }
    if ecn.contains(&GuestEcn::Refused) {
        return (Need::Perhaps, "its peer refused ECN: vcc, too, could go by losses alone");
    }
    match class {
        Class::DelayBased => {
            (Need::Perhaps, "it has ECN, but goes by delay: it may not answer marks")
        }
        Class::Unknown => (Need::Perhaps, "it has ECN; whether it answers marks was not seen"),
        _ => (Need::No, "it has ECN and answers for itself"),
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
