//! The underlays, by their names in the engine's list.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::str::FromStr;

use crate::{ParseNameError, Slot, native, sys};

/// A congestion control that the fabric sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Underlay(u8);

impl Underlay {
    /// Those that are built in, in the engine's order.
    pub fn built_in() -> impl Iterator<Item = Underlay> {
        (0..=u8::MAX).map(Underlay).take_while(|underlay| underlay.lookup().is_some())
    }

    /// Those that are built in, and those that this process has loaded ([`Slot`]).
    pub fn all() -> impl Iterator<Item = Underlay> {
        Self::built_in().chain(Slot::all().filter_map(Slot::underlay))
    }

    /// The underlay of a number in a flow's state. An unknown number is of another version, or of an
    /// underlay that only another process knows.
    pub fn from_number(number: u8) -> Option<Underlay> {
        Underlay(number).lookup().map(|_| Underlay(number))
    }

    /// Its number in the engine's structs.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Its name in policies and commands.
    pub fn name(self) -> &'static str {
        self.lookup().expect("every constructor has looked it up")
    }

    /// One line for documentation.
    pub fn about(self) -> &'static str {
        let about = match Slot::of_number(self.0) {
            Some(slot) => slot.about(),
            // SAFETY: it returns a literal, or null for a number that is not in the list.
            None => text(unsafe { native::underlay_about(self.0.into()) }),
        };
        about.expect("every underlay says what it is")
    }

    /// Is its window enforced on the guest?
    pub fn controls(self) -> bool {
        self.has(sys::CC_CONTROLS)
    }

    /// Does it use ECN on the fabric? One that does not is led by loss.
    pub fn wants_ecn(self) -> bool {
        self.has(sys::CC_ECN)
    }

    /// Does it send all segments ECT, retransmissions and pure ACKs included (RFC 8311, 4.3)?
    pub fn sends_all_ect(self) -> bool {
        self.has(sys::CC_ECT_ALL)
    }

    /// Does it know connections of different priority (AC/DC, 3.4)?
    pub fn heeds_priority(self) -> bool {
        self.has(sys::CC_PRIORITY)
    }

    /// Is it led by a target of the fabric's RTT that an operator may set?
    pub fn heeds_target(self) -> bool {
        self.has(sys::CC_TARGET)
    }

    /// May its window be any part of a segment, and below one?
    pub fn has_fractions(self) -> bool {
        self.has(sys::CC_FRACTIONS)
    }

    /// Is it led by the path's RTT?
    pub fn heeds_delay(self) -> bool {
        self.has(sys::CC_DELAY)
    }

    /// Does it keep DCTCP's alpha (RFC 8257, 3.3)?
    pub fn has_alpha(self) -> bool {
        self.has(sys::CC_ALPHA)
    }

    /// The slot that it was loaded into.
    pub fn slot(self) -> Option<Slot> {
        Slot::of_number(self.0)
    }

    fn has(self, trait_: sys::vcc_cc_trait) -> bool {
        // SAFETY: it takes any number.
        unsafe { native::underlay_traits(self.0.into()) & trait_ != 0 }
    }

    fn lookup(self) -> Option<&'static str> {
        match Slot::of_number(self.0) {
            Some(slot) => slot.name(),
            // SAFETY: likewise.
            None => text(unsafe { native::underlay_name(self.0.into()) }),
        }
    }
}

fn text(literal: *const c_char) -> Option<&'static str> {
    // SAFETY: the engine returns null or a string literal.
    (!literal.is_null()).then(|| unsafe { CStr::from_ptr(literal) }.to_str().expect("UTF-8"))
}

impl fmt::Display for Underlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Underlay {
    type Err = ParseNameError;

    fn from_str(name: &str) -> Result<Self, ParseNameError> {
        Underlay::all().find(|underlay| underlay.name() == name).ok_or_else(|| {
            let known: Vec<_> = Underlay::all().map(Underlay::name).collect();
            ParseNameError::new("underlay", name, &known)
        })
    }
}
