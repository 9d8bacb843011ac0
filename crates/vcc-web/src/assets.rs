//! The files of the page; it loads nothing from elsewhere.

pub const PAGE: &str = include_str!("../page/index.html");
pub const STYLE: &str = include_str!("../page/style.css");

macro_rules! joined {
    ($($file:literal),* $(,)?) => { concat!($(include_str!(concat!("../page/", $file))),*) };
}

/// One script of all files. What a file evaluates while it is loaded is in itself or above it.
pub const SCRIPT: &str = joined!(
    "elements.js",
    "units.js",
    "settings.js",
    "seen.js",
    "chart.js",
    "table.js",
    "controls.js",
    "overview.js",
    "ports_and_rules.js",
    "trial.js",
    "flows.js",
    "main.js",
);
