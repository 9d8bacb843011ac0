//! A rate as the datapath counts it.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use super::rate;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BytesPerMs(NonZeroU32);

impl BytesPerMs {
    const BITS_PER_S: u64 = 8 * 1000;

    pub fn get(self) -> NonZeroU32 {
        self.0
    }

    pub fn from_bits_per_s(bits_per_s: u64) -> Result<Self, String> {
        u32::try_from(bits_per_s / Self::BITS_PER_S)
            .ok()
            .and_then(NonZeroU32::new)
            .map(Self)
            .ok_or_else(|| "must be 8K to 34000G".to_owned())
    }
}

impl From<NonZeroU32> for BytesPerMs {
    fn from(bytes_per_ms: NonZeroU32) -> Self {
        Self(bytes_per_ms)
    }
}

impl FromStr for BytesPerMs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::from_bits_per_s(rate::parse(text)?)
    }
}

impl fmt::Display for BytesPerMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&rate::display(u64::from(self.0.get()) * Self::BITS_PER_S))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_one_byte_a_millisecond_to_what_32_bits_hold() {
        let bytes = |text: &str| text.parse::<BytesPerMs>().map(|rate| rate.get().get());
        assert_eq!(bytes("8K"), Ok(1));
        assert_eq!(bytes("100M"), Ok(12_500));
        for bad in ["0", "7999", "35000G"] {
            assert_eq!(bytes(bad), Err("must be 8K to 34000G".to_owned()), "{bad}");
        }
        assert_eq!("100M".parse::<BytesPerMs>().unwrap().to_string(), "100M");
    }
}
