//! Numbers, with and without units, each within bounds of its own.

use std::borrow::Cow;
use std::num::NonZeroU32;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toml::Spanned;
use toml::de::DeValue;

use super::reader::{Value, checked, integer, text, wrong_type};
use crate::problem::Findings;
use crate::text::shortened;
use crate::units::{Beta, BytesPerMs, duration, rate, size};

/// A schema that stands where it is used.
macro_rules! inline_schema {
    ([$($generics:tt)*] $type:ty, $schema:expr) => {
        impl<$($generics)*> JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}
pub(super) use inline_schema;

/// A whole number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count<const MIN: u32, const MAX: u32>(pub u32);

impl<const MIN: u32, const MAX: u32> Value for Count<MIN, MAX> {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        let wanted = format!("a number from {MIN} to {MAX}");
        let DeValue::Integer(number) = value.get_ref() else {
            wrong_type(&value.span(), value.get_ref(), &wanted, findings);
            return None;
        };
        let count = integer(value.get_ref()).and_then(|count| u32::try_from(count).ok());
        let count = count.filter(|count| (MIN..=MAX).contains(count));
        let count = count
            .ok_or_else(|| format!("must be {wanted}, not {}", shortened(&number.to_string())));
        checked(count, &value.span(), findings).map(Self)
    }
}

inline_schema!([const MIN: u32, const MAX: u32] Count<MIN, MAX>, json_schema!({
    "type": "integer", "minimum": MIN, "maximum": MAX
}));

/// Bytes, as a number or with K, M or G.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size<const MIN: u32, const MAX: u32>(pub u32);

impl<const MIN: u32, const MAX: u32> Size<MIN, MAX> {
    fn within_bounds(
        value: &Spanned<DeValue<'_>>,
        why_not_0: Option<&str>,
        findings: &mut Findings<'_>,
    ) -> Option<Self> {
        let bounds = || format!("must be {} to {}", size::display(MIN), size::display(MAX));
        let bytes = match value.get_ref() {
            number @ DeValue::Integer(_) => {
                integer(number).and_then(|bytes| u32::try_from(bytes).ok()).ok_or_else(bounds)
            }
            _ => size::parse(text(value, "a size, like 1500 or \"64K\"", findings)?),
        };
        let bytes = bytes.and_then(|bytes| match (bytes, why_not_0) {
            (0, Some(why)) => Err(format!("must be more than 0; {why}")),
            _ if (MIN..=MAX).contains(&bytes) => Ok(bytes),
            _ => Err(bounds()),
        });
        checked(bytes, &value.span(), findings).map(Self)
    }
}

impl<const MIN: u32, const MAX: u32> Value for Size<MIN, MAX> {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        Self::within_bounds(value, None, findings)
    }
}

inline_schema!([const MIN: u32, const MAX: u32] Size<MIN, MAX>, json_schema!({
    "anyOf": [
        { "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?[KkMmGg]?$" },
        { "type": "integer", "minimum": MIN, "maximum": MAX },
    ]
}));

/// Sizes that are more than 0, each with what to do where 0 was written.
macro_rules! more_than_0 {
    ($($(#[$doc:meta])* $name:ident, up to $max:expr, $why_not_0:literal;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub(crate) struct $name(pub NonZeroU32);

            impl Value for $name {
                fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
                    let size = Size::<1, { $max }>::within_bounds(value, Some($why_not_0), findings);
                    NonZeroU32::new(size?.0).map(Self)
                }
            }

            inline_schema!([] $name, Size::<1, { $max }>::json_schema(&mut SchemaGenerator::default()));
        )*
    };
}

more_than_0!(
    /// Beyond which no window is.
    Cap, up to u32::MAX, "for no limit leave the key out";
    /// What a pool has: the kernel's ledger counts in 32 bits, and beyond windows it has to hold
    /// what flows are overdrawn by.
    PoolWindow, up to 1 << 30, "a pool needs a window to share";
);

/// Bits a second, as a number or with K, M or G.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate(pub NonZeroU32);

impl Value for Rate {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        let bits_per_s = match value.get_ref() {
            // What is no number of bits is out of bounds, as 0 is.
            number @ DeValue::Integer(_) => {
                Ok(integer(number).and_then(|bits| u64::try_from(bits).ok()).unwrap_or(0))
            }
            _ => rate::parse(text(value, "a rate, like \"100M\"", findings)?),
        };
        let rate = bits_per_s.and_then(BytesPerMs::from_bits_per_s);
        checked(rate, &value.span(), findings).map(|rate| Self(rate.get()))
    }
}

inline_schema!([] Rate, json_schema!({
    "anyOf": [
        { "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?[KkMmGg]?$" },
        { "type": "integer", "minimum": 8000 },
    ]
}));

/// A time with its unit; bounds and value in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Time<MIN, MAX> {
    /// No time here is longer than 49 days, which 32 bits hold.
    pub fn in_ms(self) -> u32 {
        (self.0 / 1000).try_into().unwrap_or(u32::MAX)
    }

    pub fn in_us(self) -> u32 {
        self.0.try_into().unwrap_or(u32::MAX)
    }
}

impl<const MIN: u64, const MAX: u64> Value for Time<MIN, MAX> {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        let text = text(value, "a time with its unit, like \"10ms\"", findings)?;
        let bounded = |us| match us {
            _ if (MIN..=MAX).contains(&us) => Ok(us),
            _ => Err(format!("must be {} to {}", duration::display(MIN), duration::display(MAX))),
        };
        checked(duration::parse(text).and_then(bounded), &value.span(), findings).map(Self)
    }
}

inline_schema!([const MIN: u64, const MAX: u64] Time<MIN, MAX>, json_schema!({
    "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?(us|ms|s|min|h|d)$"
}));

impl Value for Beta {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        let priority = match value.get_ref() {
            number @ DeValue::Integer(_) => {
                integer(number).map_or(f64::NAN, |number| number as f64).try_into()
            }
            DeValue::Float(number) => number.as_str().parse(),
            other => {
                wrong_type(&value.span(), other, "a number from 0 to 1", findings);
                return None;
            }
        };
        checked(priority, &value.span(), findings)
    }
}

inline_schema!([] Beta, json_schema!({ "type": "number", "minimum": 0, "maximum": 1 }));
