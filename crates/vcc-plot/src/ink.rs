//! Colours of shapes, and the classes by which a page overrides them.

/// Colours that people with colour-blindness can distinguish (Okabe and Ito 2008).
const SERIES: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"];

/// The same for a dark ground.
const SERIES_ON_DARK: [&str; 7] =
    ["#4a9be0", "#f08a4b", "#35c295", "#e29bc5", "#efb93f", "#9ed8fb", "#aab2ba"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// What everything is drawn on.
    Ground,
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
            Self::Ground => "#ffffff",
            Self::Text => "#222222",
            Self::Label => "#4f4f4f",
            Self::Axis => "#888888",
            Self::Grid => "#e4e4e4",
            Self::Series(number) => SERIES[number % SERIES.len()],
        }
    }

    pub fn on_dark(self) -> &'static str {
        match self {
            Self::Ground => "#15181b",
            Self::Text => "#e3e6e9",
            Self::Label => "#a3acb5",
            Self::Axis => "#737c85",
            Self::Grid => "#2b3036",
            Self::Series(number) => SERIES_ON_DARK[number % SERIES.len()],
        }
    }

    /// One of each colour.
    pub fn all() -> impl Iterator<Item = Self> {
        let others = [Self::Ground, Self::Text, Self::Label, Self::Axis, Self::Grid];
        others.into_iter().chain((0..SERIES.len()).map(Self::Series))
    }

    pub fn class(self) -> String {
        match self {
            Self::Ground => "ground".into(),
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
