//! The files of the page; it loads nothing from elsewhere.

pub const PAGE: &str = include_str!("../page/index.html");
pub const STYLE: &str = include_str!("../page/style.css");
pub const SCRIPT: &str = include_str!("../page/page.js");
