//! Quantiles.

/// The values that the shares, from 0 to 1, of all values do not exceed. None without values.
pub fn quantiles<const N: usize>(mut values: Vec<f64>, shares: [f64; N]) -> Option<[f64; N]> {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(shares.map(|share| {
        values[((share * values.len() as f64).ceil() as usize).clamp(1, last + 1) - 1]
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_are_there() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(quantiles(values, [0.0, 0.5, 0.99, 1.0]), Some([1.0, 50.0, 99.0, 100.0]));
        assert_eq!(quantiles(vec![7.0], [0.5, 0.99]), Some([7.0, 7.0]));
        assert_eq!(quantiles(Vec::new(), [0.5]), None);
    }
}
