//! A value and its unit, and how both are printed.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::net::SocketAddr;

use crate::names;
use crate::units::{self, Notation};

#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Unknown or absent.
    Unknown,
    Text(Cow<'a, str>),
    End(SocketAddr),
    Integer(u64),
    Real(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Text,
    /// A number that counts nothing, such as a sequence number.
    Number,
    /// A number of events, segments or connections.
    Count,
    Segs,
    Bytes,
    BitsPerS,
    PerS,
    Ns,
    Us,
    Fraction,
}

impl Unit {
    /// The unit's name in the page's list of columns.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Count => "count",
            Self::Segs => "segs",
            Self::Bytes => "bytes",
            Self::BitsPerS => "bits_per_s",
            Self::PerS => "per_s",
            Self::Ns => "ns",
            Self::Us => "us",
            Self::Fraction => "fraction",
        }
    }

    /// Numbers are aligned at the right and sorted from the largest; text is sorted from A to Z.
    pub fn is_text(self) -> bool {
        self == Self::Text
    }

    /// Whether a value is known only after two reads.
    pub fn is_rate(self) -> bool {
        matches!(self, Self::BitsPerS | Self::PerS)
    }

    /// The width of a column whose numbers do not move it as they change.
    pub const fn width_chars(self) -> usize {
        match self {
            Self::Text | Self::Number | Self::Count => 0,
            Self::Segs => 4,
            Self::Fraction => 5,
            Self::PerS => 6,
            Self::Ns | Self::Us => 7,
            Self::Bytes => 8,
            Self::BitsPerS => 11,
        }
    }

    /// How its numbers are written; None for text.
    pub fn notation(self) -> Option<&'static Notation> {
        match self {
            Self::Text => None,
            Self::Number | Self::Count => Some(&units::WHOLE),
            Self::Segs => Some(&units::SEGS),
            Self::Bytes => Some(&units::BYTES),
            Self::BitsPerS => Some(&units::BITS_PER_S),
            Self::PerS => Some(&units::PER_S),
            Self::Ns => Some(&units::NS),
            Self::Us => Some(&units::US),
            Self::Fraction => Some(&units::FRACTION),
        }
    }

    /// How the page writes its numbers.
    pub fn short_notation(self) -> Option<&'static Notation> {
        if self == Self::Count { Some(&units::SHORT) } else { self.notation() }
    }

    /// A cell below a heading.
    pub fn cell(self, value: &Value) -> String {
        self.write(value, Notation::write)
    }

    /// A value that stands alone.
    pub fn alone(self, value: &Value) -> String {
        self.write(value, Notation::write_alone)
    }

    fn write(self, value: &Value, write: fn(&Notation, f64) -> String) -> String {
        match (value, value.number(), self.notation()) {
            (Value::Unknown, ..) => "-".to_owned(),
            (Value::Text(text), ..) => text.clone().into_owned(),
            (Value::End(end), ..) => end.to_string(),
            (_, Some(number), Some(notation)) => write(notation, number),
            (_, number, _) => number.unwrap_or_default().to_string(),
        }
    }
}

impl Value<'_> {
    pub fn is_known(&self) -> bool {
        *self != Self::Unknown
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Real(number) => Some(*number),
            _ => None,
        }
    }

    /// Orders two known values of one column.
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => names::compare(a, b),
            (Self::End(a), Self::End(b)) => a.cmp(b),
            (Self::Integer(a), Self::Integer(b)) => a.cmp(b),
            _ => self.number().unwrap_or(0.0).total_cmp(&other.number().unwrap_or(0.0)),
        }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<SocketAddr> for Value<'_> {
    fn from(end: SocketAddr) -> Self {
        Self::End(end)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

macro_rules! from_integers {
    ($($type:ty),*) => {$(
        impl From<$type> for Value<'_> {
            fn from(number: $type) -> Self {
                Self::Integer(number.into())
            }
        }
    )*};
}

from_integers!(u8, u16, u32, u64);

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Unknown, Into::into)
    }
}
