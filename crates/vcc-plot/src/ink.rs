//! Colours of shapes, and the classes by which a page overrides them.

/// Colours that people with colour-blindness can distinguish (Okabe and Ito 2008).
const SERIES: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    Text,
    Label,
    Axis,
    Grid,
    /// Index of a series; colours repeat, then dashed.
    Series(usize),
}

impl Ink {
    pub fn colour(self) -> &'static str {
        match self {
            Self::Text => "#222222",
            Self::Label => "#4f4f4f",
            Self::Axis => "#888888",
            Self::Grid => "#e4e4e4",
            Self::Series(number) => SERIES[number % SERIES.len()],
        }
    }

    pub fn class(self) -> String {
        match self {
            Self::Text => "text".into(),
            Self::Label => "label".into(),
            Self::Axis => "axis".into(),
            Self::Grid => "grid".into(),
            Self::Series(number) => format!("series-{}", number % SERIES.len()),
        }
    }

    pub fn is_dashed(self) -> bool {
        matches!(self, Self::Series(number) if number >= SERIES.len())
    }
}
