//! How one port's flows are treated.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::{Underlay, sys};

/// A name that stands for nothing here.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("unknown {what} '{name}': known are {known}")]
pub struct ParseNameError {
    what: &'static str,
    name: String,
    known: String,
}

impl ParseNameError {
    pub(crate) fn new(what: &'static str, name: &str, known: &[&str]) -> Self {
        ParseNameError { what, name: name.into(), known: known.join(", ") }
    }
}

macro_rules! named {
    ($(#[$doc:meta])* $type:ident, $what:literal, { $($(#[$vdoc:meta])* $variant:ident = $value:path, $name:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $type { $($(#[$vdoc])* $variant,)* }

        impl $type {
            /// Its number in the engine's structs.
            pub fn number(self) -> u8 {
                match self { $($type::$variant => $value as u8,)* }
            }

            /// The value that a number in the engine's structs stands for.
            pub fn from_number(number: u8) -> Option<Self> {
                [$($type::$variant,)*].into_iter().find(|value| value.number() == number)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $($type::$variant => $name,)* })
            }
        }

        impl FromStr for $type {
            type Err = ParseNameError;

            fn from_str(name: &str) -> Result<Self, ParseNameError> {
                match name {
                    $($name => Ok($type::$variant),)*
                    _ => Err(ParseNameError::new($what, name, &[$($name,)*])),
                }
            }
        }
    };
}

named!(
    /// Whether a port's flows are changed.
    Mode, "mode", {
        /// The underlay is enforced.
        Enforce = sys::MODE_ENFORCE, "enforce";
        /// Everything is computed, nothing changed.
        Shadow = sys::MODE_SHADOW, "shadow";
        /// The flows that are there are enforced to their end; new ones are left alone.
        Drain = sys::MODE_DRAIN, "drain";
        /// New flows are left alone, and those that do not depend on vcc are let go.
        Ignore = sys::MODE_IGNORE, "ignore";
    }
);

named!(
    /// What to do with a guest that negotiates ECN itself.
    GuestEcn, "treatment of a guest's ECN", {
        /// Its flows are tracked and not changed.
        Leave = sys::GUEST_ECN_LEAVE, "leave";
        /// The underlay answers its marks in its stead.
        Override = sys::GUEST_ECN_OVERRIDE, "override";
    }
);

named!(
    /// What becomes of a new connection where the port has no room for it.
    OnFull, "answer to a full table", {
        /// It goes on untranslated.
        Pass = sys::ON_FULL_PASS, "pass";
        /// Its SYN is dropped.
        Drop = sys::ON_FULL_DROP, "drop";
    }
);

/// The engine's parameters; see `struct vcc_params` for units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Params(pub sys::vcc_params);

impl Default for Params {
    fn default() -> Self {
        const MINUTE_MS: u32 = 60_000;
        Params(sys::vcc_params {
            underlay: Underlay::default().number(),
            mode: Mode::Enforce.number(),
            guest_ecn: GuestEcn::Leave.number(),
            prr: 1,
            undo: 1,
            pace_push: 1,
            feedback: 1,
            police: 0,
            trace: 0,
            beta_1024: sys::BETA_ONE as u16,
            emit: 0,
            window_floor_segs: 1,
            initial_window_segs: 10,
            // Scale 5: 10 Gbit/s at 1.6 ms, for 8 of 1448 bytes of MSS.
            window_max_bytes: 2 << 20,
            cap_bytes: 0,
            cap_bytes_per_ms: 0,
            rto_min_us: 200_000,
            // AC/DC, 5: what its hosts have for RTO_min.
            emit_after_us: 10_000,
            // A forgotten flow whose scale was rewritten would crawl, so a silent one is kept long.
            established_idle_ms: 5 * 24 * 60 * MINUTE_MS,
            // Longer than Linux keeps trying: 127 s for a SYN, 63 s for a SYN-ACK.
            handshake_idle_ms: 130_000,
            closed_idle_ms: 10_000,
            pool: 0,
            pool_weight: 0,
            pool_bytes: 0,
            on_full: OnFull::Pass.number().into(),
        })
    }
}
