//! An axis with round numbers.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    Linear,
    Logarithmic,
}

/// About how many intervals between ticks.
const INTERVALS: f64 = 5.0;

pub struct Axis {
    name: String,
    scale: Scale,
    low: f64,
    high: f64,
    /// Between ticks; of a linear axis.
    step: f64,
}

impl Axis {
    /// Between round numbers that enclose zero and all values.
    pub fn from_zero(name: &str, values: impl Iterator<Item = f64>) -> Self {
        Self::linear(name, values.chain([0.0]))
    }

    /// Between round numbers that enclose all values.
    pub fn spanning(name: &str, scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        match scale {
            Scale::Linear => Self::linear(name, values),
            Scale::Logarithmic => Self::logarithmic(name, values),
        }
    }

    /// Values that have no logarithm are left out.
    fn logarithmic(name: &str, values: impl Iterator<Item = f64>) -> Self {
        let (least, most) = range(values.filter(|&value| value > 0.0));
        let (least, most) = if least <= most { (least, most) } else { (1.0, 1.0) };
        let low = round_down(least);
        let high = round_step(most);
        let high = if low < high { high } else { low * 10.0 };
        Self { name: name.into(), scale: Scale::Logarithmic, low, high, step: 0.0 }
    }

    fn linear(name: &str, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = range(values);
        let (low, high) = if low < high { (low, high) } else { (0.0, high.max(1.0)) };
        let step = round_step((high - low) / INTERVALS);
        Self {
            name: name.into(),
            scale: Scale::Linear,
            low: (low / step).floor() * step,
            high: (high / step).ceil() * step,
            step,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn ticks(&self) -> Vec<f64> {
        let (low, step) = (self.low, self.step);
        match self.scale {
            Scale::Linear => {
                let count = ((self.high - low) / step).round() as u32;
                (0..=count).map(|tick| low + f64::from(tick) * step).collect()
            }
            Scale::Logarithmic => {
                let next = |&tick: &f64| Some(round_step(tick * 1.5));
                let ticks = std::iter::successors(Some(low), next);
                ticks.take_while(|&tick| tick < self.high * 1.01).collect()
            }
        }
    }

    /// 0 at the low end, 1 at the high end.
    pub fn position(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => {
                (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
            }
        }
    }

    pub fn label(&self, tick: f64) -> String {
        let least = match self.scale {
            Scale::Linear => self.step,
            Scale::Logarithmic => tick,
        };
        let decimals = (-least.log10().floor()).clamp(0.0, 6.0) as usize;
        format!("{tick:.decimals$}")
    }
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// The next of 1, 2, 5 times a power of ten.
fn round_step(raw: f64) -> f64 {
    let power = 10.0_f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= raw);
    factor.unwrap_or(10.0) * power
}

/// The last of 1, 2, 5 times a power of ten.
fn round_down(raw: f64) -> f64 {
    let power = 10.0_f64.powf(raw.log10().floor());
    let factor = [5.0, 2.0, 1.0].into_iter().find(|factor| factor * power <= raw);
    factor.unwrap_or(1.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_enclose_the_values() {
        let axis = Axis::from_zero("y", [0.3, 1.17].into_iter());
        let ticks: Vec<String> = axis.ticks().into_iter().map(|tick| axis.label(tick)).collect();
        assert_eq!(ticks, ["0.0", "0.5", "1.0", "1.5"]);
        assert_eq!((axis.position(0.0), axis.position(1.5)), (0.0, 1.0));
    }

    #[test]
    fn a_logarithmic_axis_has_the_same_length_for_the_same_factor() {
        let values = [640.0, 72_000.0, 0.0];
        let axis = Axis::spanning("x", Scale::Logarithmic, values.into_iter());
        let ticks: Vec<String> = axis.ticks().into_iter().map(|tick| axis.label(tick)).collect();
        assert_eq!(ticks, ["500", "1000", "2000", "5000", "10000", "20000", "50000", "100000"]);
        let length = |from, to| axis.position(to) - axis.position(from);
        assert!((length(500.0, 5_000.0) - length(7_000.0, 70_000.0)).abs() < 1e-9);
        assert_eq!((axis.position(500.0), axis.position(100_000.0)), (0.0, 1.0));
    }

    #[test]
    fn no_values_and_one_value_still_make_an_axis() {
        assert!(Axis::from_zero("y", std::iter::empty()).ticks().len() >= 2);
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let axis = Axis::spanning("x", scale, [7.0].into_iter());
            assert!((0.0..=1.0).contains(&axis.position(7.0)));
            assert!(Axis::spanning("x", scale, std::iter::empty()).ticks().len() >= 2);
        }
    }
}
