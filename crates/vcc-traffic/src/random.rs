//! The lab's pseudo-random numbers.

/// The output function of SplitMix64 (Steele, Lea, Flood 2014): a word that depends on every bit of
/// `x`.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::mix;

    /// First output for seed 1234567 of the authors' reference code.
    #[test]
    fn matches_the_reference() {
        assert_eq!(
            mix(1_234_567_u64.wrapping_add(0x9e37_79b9_7f4a_7c15)),
            6_457_827_717_110_365_317
        );
    }
}
