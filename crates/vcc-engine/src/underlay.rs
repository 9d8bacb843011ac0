//! The underlays, by their names in the engine's list.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::str::FromStr;

use crate::ParseNameError;

unsafe extern "C" {
    safe fn vcc_native_underlay_name(underlay: u32) -> *const c_char;
    safe fn vcc_native_underlay_controls(underlay: u32) -> bool;
}

/// A congestion control that the fabric sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Underlay(u8);

impl Underlay {
    /// All of them, in the engine's order.
    pub fn all() -> impl Iterator<Item = Underlay> {
        (0..=u8::MAX).map(Underlay).take_while(|underlay| underlay.lookup().is_some())
    }

    /// The underlay of a number in a flow's state. An unknown number is of another version.
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

    /// Is its window enforced on the guest?
    pub fn controls(self) -> bool {
        vcc_native_underlay_controls(self.0.into())
    }

    fn lookup(self) -> Option<&'static str> {
        let name = vcc_native_underlay_name(self.0.into());
        // SAFETY: the engine returns null or a string literal.
        (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_str().expect("ASCII"))
    }
}

impl Default for Underlay {
    /// vCC's: NewReno with ECN.
    fn default() -> Self {
        "reno-ecn".parse().expect("the engine has reno-ecn")
    }
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
