//! Pseudo-random numbers, seeded so that runs can be repeated: SplitMix64
//! (Steele, Lea, Flood 2014), one addition and three shifts a number.

/// The increment of the state: 2^64 divided by the golden ratio.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function: a word that depends on every bit of `x`.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The n-th number of a seed's sequence, counted from 1.
pub fn nth(seed: u64, place: u64) -> u64 {
    mix(seed.wrapping_add(place.wrapping_mul(GOLDEN)))
}

/// The generator.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// Uniformly distributed between half of `mean` and one and a half times `mean`.
    pub fn around(&mut self, mean: u64) -> u64 {
        mean / 2 + self.next_u64() % mean.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First outputs for seed 1234567 of the authors' reference code.
    #[test]
    fn matches_the_reference() {
        const REFERENCE: [u64; 2] = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!([random.next_u64(), random.next_u64()], REFERENCE);
        assert_eq!([1, 2].map(|place| nth(1_234_567, place)), REFERENCE);
    }
}
