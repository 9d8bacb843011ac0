//! The guess about a connection.

use std::fmt;

/// The class of a congestion control; its name cannot be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Grows by segments per round trip and reduces by a factor: Reno, and with other constants
    /// DCTCP, HighSpeed TCP, Illinois.
    RenoLike,
    /// Keeps 0.7 of its window and grows by time (RFC 9438).
    CubicLike,
    /// Keeps the queue short without losses, or does not react to losses: Vegas, BBR.
    DelayBased,
    /// Fills any window that it is shown.
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

/// A class, its confidence and the reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Guess {
    pub class: Class,
    /// From 0 to 1; 0 if unknown.
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
