//! The metrics that a file of the project names.

use std::collections::BTreeSet;

/// Words of a text that are names of metrics.
pub fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("vcc_")).collect()
}
