//! The unit of an interface's times (if_tsresol of pcapng), and times in ns.

const NS_PER_S: i128 = 1_000_000_000;
/// Beyond these powers, a second has more units than any clock counts.
const DECIMAL_MAX: u8 = 18;
const BINARY_MAX: u8 = 60;
/// The power is one of two.
const BINARY: u8 = 0x80;

/// Times count units of this part of a second, from an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resolution {
    units_per_s: i128,
    offset_s: i64,
}

impl Resolution {
    /// None if a second has more units than any clock counts.
    pub(crate) fn new(raw: u8, offset_s: i64) -> Option<Self> {
        let power = raw & !BINARY;
        let units_per_s = match raw & BINARY != 0 {
            true => (power <= BINARY_MAX).then(|| 1 << power)?,
            false => (power <= DECIMAL_MAX).then(|| 10_i128.pow(power.into()))?,
        };
        Some(Self { units_per_s, offset_s })
    }

    /// Since 1970, limited to what fits.
    pub(crate) fn ns(self, units: u64) -> u64 {
        let since_offset = i128::from(units) * NS_PER_S / self.units_per_s;
        let ns = since_offset + i128::from(self.offset_s) * NS_PER_S;
        ns.clamp(0, u64::MAX.into()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_and_of_two() {
        let ns = |raw, offset_s, units| Resolution::new(raw, offset_s).map(|it| it.ns(units));
        assert_eq!(ns(6, 0, 1_700_000_000_000_001), Some(1_700_000_000_000_001_000));
        assert_eq!(ns(9, 0, 1_700_000_000_000_000_001), Some(1_700_000_000_000_000_001));
        assert_eq!(ns(0, 1_700_000_000, 3), Some(1_700_000_003_000_000_000));
        assert_eq!(ns(12, 0, 2500), Some(2));
        assert_eq!(ns(BINARY | 10, 0, 1536), Some(1_500_000_000));
        assert_eq!(ns(BINARY, -1, 3), Some(2_000_000_000));
        assert_eq!(ns(0, -5, 3), Some(0), "before 1970");
        assert_eq!(ns(0, 0, u64::MAX), Some(u64::MAX));
        assert_eq!((ns(19, 0, 1), ns(BINARY | 61, 0, 1)), (None, None));
    }
}
