//! Lists in messages: only the first few of many values.

use std::fmt::Display;

pub(crate) fn listing<T: Display>(values: &[T], between: &str) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = values.iter().take(SHOWN).map(T::to_string).collect();
    let text = shown.join(between);
    match values.len().saturating_sub(SHOWN) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}
