//! What is made of a connection in the end.

use std::fmt;

/// What its congestion control is like; its name cannot be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Grows by segments a round trip and reduces by a factor: Reno, and with other constants DCTCP,
    /// HighSpeed TCP, Illinois.
    RenoLike,
    /// Keeps 0.7 of its window, and grows by the clock (RFC 9438).
    CubicLike,
    /// Keeps the queue short before anything is lost, or does not answer losses: Vegas, BBR.
    DelayBased,
    /// Fills whatever window it is shown.
    Unlimited,
    Unknown,
}

impl Class {
    pub const ALL: [Self; 5] =
        [Self::RenoLike, Self::CubicLike, Self::DelayBased, Self::Unlimited, Self::Unknown];

    pub fn name(self) -> &'static str {
        match self {
            Self::RenoLike => "reno-like",
            Self::CubicLike => "cubic-like",
            Self::DelayBased => "delay-based",
            Self::Unlimited => "unlimited",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A class, how sure that is, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Guess {
    pub class: Class,
    /// From 0 to 1; 0 of what is unknown.
    pub confidence: f64,
    pub reasons: Vec<String>,
}

impl Guess {
    pub(crate) fn new(class: Class, confidence: f64, reason: impl Into<String>) -> Self {
        Self { class, confidence, reasons: vec![reason.into()] }
    }

    pub(crate) fn unknown(reason: impl Into<String>) -> Self {
        Self::new(Class::Unknown, 0.0, reason)
    }
}
