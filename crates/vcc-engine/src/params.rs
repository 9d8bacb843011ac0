//! How connections are treated: the engine's parameters.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use crate::{ParseNameError, Segment, Underlay, native, sys};

macro_rules! named {
    ($(#[$doc:meta])* $type:ident, $what:literal, { $($(#[$vdoc:meta])* $variant:ident = $value:path, $name:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $type { $($(#[$vdoc])* $variant,)* }

        impl $type {
            pub const ALL: &[Self] = &[$($type::$variant,)*];

            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)* }
            }

            /// Its number in the engine's structs.
            pub fn number(self) -> u8 {
                match self { $($type::$variant => $value as u8,)* }
            }

            /// The value of a number in the engine's structs.
            pub fn from_number(number: u8) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.number() == number)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $type {
            type Err = ParseNameError;

            fn from_str(name: &str) -> Result<Self, ParseNameError> {
                let found = Self::ALL.iter().copied().find(|value| value.name() == name);
                found.ok_or_else(|| ParseNameError::new($what, name, &[$($name,)*]))
            }
        }
    };
}

named!(
    /// Whether connections are changed.
    Mode, "mode", {
        /// The underlay is enforced.
        Enforce = sys::MODE_ENFORCE, "enforce";
        /// Everything is computed, nothing changed.
        Shadow = sys::MODE_SHADOW, "shadow";
        /// Existing flows are enforced to their end; new ones are left alone.
        Drain = sys::MODE_DRAIN, "drain";
        /// New flows are left alone, and those that do not depend on vcc are released.
        Ignore = sys::MODE_IGNORE, "ignore";
    }
);

named!(
    /// What to do with a guest that negotiates ECN itself.
    GuestEcn, "treatment of a guest's ECN", {
        /// Its flows are tracked and not changed.
        Leave = sys::GUEST_ECN_LEAVE, "leave";
        /// The underlay answers the marks instead of the guest.
        Override = sys::GUEST_ECN_OVERRIDE, "override";
    }
);

named!(
    /// Treatment of a new connection for which the port's table has no room.
    OnFull, "answer to a full table", {
        /// It passes untranslated.
        Pass = sys::ON_FULL_PASS, "pass";
        /// Its SYN is dropped.
        Drop = sys::ON_FULL_DROP, "drop";
    }
);

named!(
    /// Where a rule polices, treatment of a guest's data whose connection the port does not know.
    OnUnknown, "answer to data of unknown connections", {
        /// It is dropped, after a grace.
        Drop = sys::ON_UNKNOWN_DROP, "drop";
        /// It passes untranslated.
        Pass = sys::ON_UNKNOWN_PASS, "pass";
    }
);

named!(
    /// How the underlay's window acts on the guest.
    Act, "way to act on the guest", {
        /// The guest is shown it.
        Window = sys::ACT_WINDOW, "window";
        /// The guest's segments are held until it admits them.
        Hold = sys::ACT_HOLD, "hold";
        /// And they are acknowledged, and delivered whatever is lost.
        Split = sys::ACT_SPLIT, "split";
    }
);

named!(
    /// Who acknowledges what arrives for the guest.
    Receive, "way to receive", {
        /// The guest alone.
        Guest = sys::RECEIVE_GUEST, "guest";
        /// The port, what lies in the guest's receive ring.
        Ring = sys::RECEIVE_RING, "ring";
        /// And what lies in the port's own buffer.
        Buffer = sys::RECEIVE_BUFFER, "buffer";
        /// And SYNs.
        Accept = sys::RECEIVE_ACCEPT, "accept";
    }
);

named!(
    /// How the flows of a port share its buffer.
    BufferPolicy, "policy for the buffer", {
        /// First come, first served.
        None = sys::BUFFER_NONE, "none";
        /// Each flow has a threshold, which falls as the buffer fills.
        Fair = sys::BUFFER_FAIR, "fair";
        /// Flows with a short RTT have a higher threshold.
        Prioritized = sys::BUFFER_PRIORITIZED, "prioritized";
    }
);

/// The engine's parameters: how connections are treated. `struct vcc_params` says what each field
/// means; an operator sets them by the keys of a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Params(pub sys::vcc_params);

impl Params {
    /// The defaults with some of them changed.
    pub fn with(change: impl FnOnce(&mut sys::vcc_params)) -> Self {
        let mut params = Self::default();
        change(&mut params.0);
        params
    }

    /// None where the number is that of another version's mode; likewise below.
    pub fn mode(&self) -> Option<Mode> {
        Mode::from_number(self.0.mode)
    }

    pub fn underlay(&self) -> Option<Underlay> {
        Underlay::from_number(self.0.underlay)
    }

    /// May ACKs to the guest have to wait, for windows below one segment?
    pub fn paces_acks(&self) -> bool {
        self.0.window_floor_segs == 0
            && u32::from(self.0.act) == sys::ACT_WINDOW
            && self.mode() == Some(Mode::Enforce)
    }

    /// Is a guest's data dropped whose connection is unknown, once the grace is over?
    pub fn rejects_unknown(&self) -> bool {
        // SAFETY: it points to a live value of the C type for the length of the call.
        unsafe { native::rejects_unknown(&self.0) }
    }

    /// Is this segment from the guest, of an unknown connection, dropped? `attached_s`: since when
    /// there is a port, on the clock of `now_s`, in seconds.
    pub fn drops_unknown(&self, segment: &Segment, attached_s: u32, now_s: u32) -> bool {
        // SAFETY: both point to live values of the C types for the length of the call.
        unsafe { native::drops_unknown(&self.0, segment, attached_s, now_s) }
    }

    /// The rate that binds data of connections that the port does not know, in bytes a ms; None: no rate.
    pub fn unknown_rate_bytes_per_ms(&self) -> Option<NonZeroU32> {
        // SAFETY: a live value of the C type.
        NonZeroU32::new(unsafe { native::unknown_rate_bytes_per_ms(&self.0) })
    }

    /// Since when a rule of these parameters polices, for `policed_s`: the connections that it gets when
    /// it begins may have been left alone before, and are unknown. `before`: the same of the rule of its
    /// name in the edition before, if that rejected what is unknown. 0 of one that always has, as far as
    /// is known.
    pub fn policed_since_s(&self, is_first_edition: bool, before: Option<u32>, now_s: u32) -> u32 {
        match before {
            _ if !self.rejects_unknown() || is_first_edition => 0,
            Some(since_s) => since_s,
            None => now_s,
        }
    }

    /// The time until [`Self::drops_unknown`] begins; None: it never does.
    pub fn unknown_grace_left_s(&self, attached_s: u32, now_s: u32) -> Option<u32> {
        // SAFETY: it points to a live value of the C type for the length of the call.
        let left_s = unsafe { native::unknown_grace_left_s(&self.0, attached_s, now_s) };
        self.rejects_unknown().then_some(left_s)
    }
}

impl Default for Params {
    fn default() -> Self {
        let mut params = sys::vcc_params::default();
        // SAFETY: it points to a live value of the C type for the length of the call.
        unsafe { native::params_default(&mut params) };
        Self(params)
    }
}

impl Default for Underlay {
    fn default() -> Self {
        Params::default().underlay().expect("the engine's default is an underlay")
    }
}
