//! Text from elsewhere in messages: without control characters, and not too long.

use std::borrow::Cow;

/// A text of several lines: line feeds and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    // What most texts consist of, many bytes at a time.
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    let are_plain = |bytes: &[u8]| bytes.iter().fold(true, |all, byte| all & is_plain(byte));
    if text.as_bytes().chunks(256).all(are_plain) {
        return text.into();
    }
    escaped(text, |c| is_obeyed(c) && !matches!(c, '\n' | '\t'))
}

/// A text that becomes one line.
pub fn printable_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_obeyed)
}

/// Control characters, and those that change the direction of text.
pub(crate) fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escaped as in JSON: a JSON document stays one.
fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            escaped += &format!("\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped.into()
}

/// Enough to recognise a value.
const LONGEST_CHARS: usize = 64;

/// A value in a message; only the beginning of a long one.
pub fn shortened(value: &str) -> Cow<'_, str> {
    match value.char_indices().nth(LONGEST_CHARS) {
        None => value.into(),
        Some((end, _)) => format!("{}...", &value[..end]).into(),
    }
}

/// The last character boundary up to `at`.
pub fn char_boundary(text: &str, at: usize) -> usize {
    let boundary = |at: &usize| text.is_char_boundary(*at);
    (0..=at.min(text.len())).rev().find(boundary).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        for (text, lines, line) in [
            ("é\ta\n", "é\ta\n", "é\\u0009a\\u000a"),
            ("\x1b[31mred\r", "\\u001b[31mred\\u000d", "\\u001b[31mred\\u000d"),
            ("\u{7f}\u{9b}2J\0", "\\u007f\\u009b2J\\u0000", "\\u007f\\u009b2J\\u0000"),
            ("a\u{202e}b\u{2069}", "a\\u202eb\\u2069", "a\\u202eb\\u2069"),
        ] {
            assert_eq!((&*printable(text), &*printable_line(text)), (lines, line));
        }
    }

    #[test]
    fn json_stays_json() {
        let value = serde_json::json!({ "a\u{9b}\"\n": "\u{7f}\u{1b}\u{202e}\\" });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let shown = printable(&text);
        assert!(!shown.contains(|c: char| is_obeyed(c) && c != '\n'), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn a_long_value_is_cut() {
        let long = "é".repeat(65);
        assert_eq!(shortened(&long[2..]), long[2..]);
        assert_eq!(shortened(&long), format!("{}...", "é".repeat(64)));
    }
}
