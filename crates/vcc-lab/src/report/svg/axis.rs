//! An axis with round numbers.

/// About how many intervals between ticks.
const INTERVALS: f64 = 5.0;

pub(super) struct Axis {
    name: String,
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// From zero to a round number that is not below the largest value.
    pub fn from_zero(name: &str, values: impl Iterator<Item = f64>) -> Self {
        Self::spanning(name, values.chain([0.0]))
    }

    /// Between round numbers that enclose all values.
    pub fn spanning(name: &str, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let (low, high) = if low < high { (low, high) } else { (0.0, high.max(1.0)) };
        let step = round_step((high - low) / INTERVALS);
        Self {
            name: name.into(),
            low: (low / step).floor() * step,
            high: (high / step).ceil() * step,
            step,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn ticks(&self) -> impl Iterator<Item = f64> + use<> {
        let (low, step) = (self.low, self.step);
        let count = ((self.high - low) / step).round() as u32;
        (0..=count).map(move |tick| low + f64::from(tick) * step)
    }

    /// 0 at the low end, 1 at the high end.
    pub fn position(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    pub fn label(&self, tick: f64) -> String {
        let decimals = (-self.step.log10().floor()).clamp(0.0, 6.0) as usize;
        format!("{tick:.decimals$}")
    }
}

/// The next of 1, 2, 5 times a power of ten.
fn round_step(raw: f64) -> f64 {
    let power = 10.0_f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= raw);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_enclose_the_values() {
        let axis = Axis::from_zero("y", [0.3, 1.17].into_iter());
        let ticks: Vec<String> = axis.ticks().map(|tick| axis.label(tick)).collect();
        assert_eq!(ticks, ["0.0", "0.5", "1.0", "1.5"]);
        assert_eq!((axis.position(0.0), axis.position(1.5)), (0.0, 1.0));
    }

    #[test]
    fn no_values_and_one_value_still_make_an_axis() {
        assert!(Axis::from_zero("y", std::iter::empty()).ticks().count() >= 2);
        let axis = Axis::spanning("x", [7.0].into_iter());
        assert!(axis.position(7.0) <= 1.0);
    }
}
