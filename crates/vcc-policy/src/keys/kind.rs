//! The kind of a key's value: syntax, bounds and output format.

use crate::name;
use crate::nearest::suggestion;
use crate::text::shortened;
use crate::units::{duration, fraction, rate, size};

/// A value is a number in the unit of the engine's parameters, in any notation of the operator.
#[derive(Clone, Copy)]
pub enum Kind {
    /// True or false.
    Flag,
    /// One of a few names, each with its number. The noun comes with its article.
    Name { noun: &'static str, values: fn() -> Vec<(&'static str, u32)> },
    /// A whole number.
    Count { min: u32, max: u32 },
    /// Bytes. Where 0 is out of bounds, it stands for no limit.
    Size { min: u32, max: u32 },
    /// A rate in bit/s; bytes per millisecond to the engine. 0 stands for no limit.
    Rate,
    /// A time; `unit_us` is the engine's unit.
    Time { unit_us: u64, min_us: u64, max_us: u64 },
    /// A number from 0 to 1; to the engine in 1/1024.
    Fraction,
    /// The name of one of the policy's pools.
    Pool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Number(u32),
    Pool(String),
}

impl Value {
    pub fn number(&self) -> Option<u32> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Pool(_) => None,
        }
    }
}

/// A value as it stands in a file.
#[derive(Clone, Copy, Debug)]
pub enum Scalar<'a> {
    Flag(bool),
    /// None where it does not fit.
    Integer(Option<i64>),
    Float(f64),
    Text(&'a str),
    /// Something else, by the name of its type.
    Other(&'static str),
}

impl Scalar<'_> {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Scalar::Flag(_) => "a boolean",
            Scalar::Integer(_) => "an integer",
            Scalar::Float(_) => "a float",
            Scalar::Text(_) => "a string",
            Scalar::Other(name) => name,
        }
    }
}

impl Kind {
    /// The value in a file, or its error.
    pub fn read(&self, scalar: Scalar<'_>) -> Result<Value, String> {
        let number = match (self, scalar) {
            (Kind::Pool, Scalar::Text(name)) => {
                return name::check(name).map(|()| Value::Pool(name.to_owned()));
            }
            (Kind::Flag, Scalar::Flag(flag)) => Ok(flag.into()),
            (Kind::Count { .. } | Kind::Size { .. }, Scalar::Integer(number)) => {
                self.within(number.and_then(|number| u32::try_from(number).ok()), number)
            }
            (Kind::Rate, Scalar::Integer(bits)) => {
                let bits = bits.and_then(|bits| u64::try_from(bits).ok());
                rate::to_bytes_per_ms(bits.unwrap_or(0))
            }
            (Kind::Fraction, Scalar::Integer(number)) => {
                fraction::from_number(number.map_or(f64::NAN, |number| number as f64))
            }
            (Kind::Fraction, Scalar::Float(number)) => fraction::from_number(number),
            (
                Kind::Name { .. } | Kind::Size { .. } | Kind::Rate | Kind::Time { .. },
                Scalar::Text(text),
            ) => self.parse(text),
            _ => Err(format!("must be {}, not {}", self.wanted(), scalar.type_name())),
        };
        number.map(Value::Number)
    }

    /// The value in an argument of the command line, or its error.
    pub fn parse(&self, text: &str) -> Result<u32, String> {
        match self {
            Kind::Flag => {
                text.parse::<bool>().map(u32::from).map_err(|_| "must be true or false".to_owned())
            }
            Kind::Name { noun, values } => {
                let values = values();
                let found = values.iter().find(|(name, _)| *name == text);
                found.map(|(_, number)| *number).ok_or_else(|| {
                    let known = values.iter().map(|(name, _)| *name);
                    format!("`{}` is not {noun}; {}", shortened(text), suggestion(text, known))
                })
            }
            Kind::Count { .. } => {
                let number = text.parse::<i64>().map_err(|_| format!("must be {}", self.wanted()));
                let number = number?;
                self.within(u32::try_from(number).ok(), Some(number))
            }
            Kind::Size { .. } => {
                let bytes = size::parse(text)?;
                self.within(Some(bytes), Some(bytes.into()))
            }
            Kind::Rate => rate::to_bytes_per_ms(rate::parse(text)?),
            Kind::Time { unit_us, min_us, max_us } => match duration::parse(text)? {
                us if !(*min_us..=*max_us).contains(&us) => {
                    let bounds = [*min_us, *max_us].map(duration::display).join(" to ");
                    Err(format!("must be {bounds}, not {}", shortened(text)))
                }
                us => Ok(u32::try_from(us / unit_us).unwrap_or(u32::MAX)),
            },
            Kind::Fraction => fraction::parse(text),
            Kind::Pool => Err("pools are those of a policy".to_owned()),
        }
    }

    /// `number` if it is within the bounds; `written` is what to say otherwise.
    fn within(&self, number: Option<u32>, written: Option<i64>) -> Result<u32, String> {
        let (min, max, wanted) = match *self {
            Kind::Size { min, max } => {
                (min, max, format!("{} to {}", size::display(min), size::display(max)))
            }
            Kind::Count { min, max } => (min, max, self.wanted()),
            _ => (0, u32::MAX, self.wanted()),
        };
        number.filter(|number| (min..=max).contains(number)).ok_or_else(|| match written {
            Some(0) if self.is_none(0) && max == u32::MAX => {
                format!("must be {wanted}, not 0; leave the key out for no limit")
            }
            Some(written) => format!("must be {wanted}, not {written}"),
            None => format!("must be {wanted}"),
        })
    }

    /// Formats a value for operators; the command line reads this format.
    pub fn show(&self, number: u32) -> String {
        match self {
            _ if self.is_none(number) => "none".to_owned(),
            Kind::Flag => (number != 0).to_string(),
            Kind::Name { values, .. } => {
                let name = values().into_iter().find(|(_, known)| *known == number);
                name.map_or_else(|| number.to_string(), |(name, _)| name.to_owned())
            }
            Kind::Count { .. } | Kind::Pool => number.to_string(),
            Kind::Size { .. } => size::display(number),
            Kind::Rate => rate::display(rate::of_bytes_per_ms(number)),
            Kind::Time { unit_us, .. } => duration::display(u64::from(number) * unit_us),
            Kind::Fraction => fraction::display(number),
        }
    }

    /// Formats a value as TOML.
    pub fn toml(&self, number: u32) -> String {
        match self {
            Kind::Flag | Kind::Count { .. } | Kind::Fraction => self.show(number),
            _ => format!("\"{}\"", self.show(number)),
        }
    }

    /// Does this number stand for no limit?
    pub fn is_none(&self, number: u32) -> bool {
        number == 0 && matches!(self, Kind::Rate | Kind::Size { min: 1.., .. })
    }

    pub fn is_number(&self) -> bool {
        !matches!(self, Kind::Flag | Kind::Name { .. } | Kind::Pool)
    }

    /// The placeholder of the value in help.
    pub fn placeholder(&self) -> &'static str {
        match self {
            Kind::Flag => "BOOL",
            Kind::Name { .. } | Kind::Pool => "NAME",
            Kind::Count { .. } => "N",
            Kind::Size { .. } => "SIZE",
            Kind::Rate => "RATE",
            Kind::Time { .. } => "TIME",
            Kind::Fraction => "X",
        }
    }

    /// The values that there are, in words.
    pub fn wanted(&self) -> String {
        match self {
            Kind::Flag => "true or false".to_owned(),
            Kind::Name { noun, .. } => format!("the name of {noun}"),
            Kind::Count { min, max } => format!("a number from {min} to {max}"),
            Kind::Size { .. } => "a size, like 1500 or \"64K\"".to_owned(),
            Kind::Rate => "a rate, like \"100M\"".to_owned(),
            Kind::Time { .. } => "a time with its unit, like \"10ms\"".to_owned(),
            Kind::Fraction => "a number from 0 to 1".to_owned(),
            Kind::Pool => "the name of a pool".to_owned(),
        }
    }

    /// The bounds of the value, as documentation lists them.
    pub fn bounds(&self) -> String {
        match self {
            Kind::Flag => "true, false".to_owned(),
            Kind::Name { values, .. } => {
                let names = values().into_iter().map(|(name, _)| format!("`\"{name}\"`"));
                names.collect::<Vec<_>>().join(", ")
            }
            Kind::Count { min, max } => format!("{min} to {max}"),
            Kind::Size { min: 1, max: u32::MAX } => "a size".to_owned(),
            Kind::Size { min, max } => {
                format!("a size, {} to {}", size::display(*min), size::display(*max))
            }
            Kind::Rate => "a rate".to_owned(),
            Kind::Time { min_us, max_us, .. } => {
                format!("a time, {} to {}", duration::display(*min_us), duration::display(*max_us))
            }
            Kind::Fraction => "0 to 1".to_owned(),
            Kind::Pool => "a name".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_again() {
        const NAMES: Kind = Kind::Name { noun: "a name", values: || vec![("a", 3), ("b", 4)] };
        for (kind, texts) in [
            (Kind::Flag, &["true", "false"][..]),
            (NAMES, &["a", "b"]),
            (Kind::Count { min: 1, max: 1000 }, &["1", "1000"]),
            (Kind::Size { min: 1, max: u32::MAX }, &["1448", "64K", "3G"]),
            (Kind::Rate, &["8K", "100M", "2500M", "34G"]),
            (Kind::Time { unit_us: 1000, min_us: 1000, max_us: 60_000_000 }, &["10ms", "1min"]),
            (Kind::Fraction, &["0", "0.25", "1"]),
        ] {
            for text in texts {
                let number = kind.parse(text).unwrap_or_else(|wrong| panic!("{text}: {wrong}"));
                assert_eq!(kind.show(number), *text);
            }
        }
    }

    #[test]
    fn no_limit_is_no_number() {
        let cap = Kind::Size { min: 1, max: u32::MAX };
        assert!(cap.parse("0").unwrap_err().ends_with("leave the key out for no limit"));
        assert_eq!((cap.show(0), Kind::Rate.show(0)), ("none".into(), "none".into()));
        assert_eq!(Kind::Count { min: 0, max: 1 }.show(0), "0");
    }
}
