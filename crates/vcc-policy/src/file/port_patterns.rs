//! Patterns of what ports are: devices, or sockets.

use std::borrow::Cow;

use glob::Pattern;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toml::Spanned;
use toml::de::DeValue;

use super::reader::{Value, checked, text};
use super::value_schema::inline_schema;
use crate::problem::Findings;
use crate::text::shortened;

/// A pattern of device names.
#[derive(Clone, Debug)]
pub(crate) struct DeviceGlob(pub Pattern);

/// A pattern of paths of sockets. `*` matches `/` as well.
#[derive(Clone, Debug)]
pub(crate) struct SocketGlob(pub Pattern);

impl DeviceGlob {
    /// IFNAMSIZ, less its zero.
    const LONGEST_NAME: usize = 15;

    fn parse(text: &str) -> Result<Pattern, String> {
        if text.is_empty() {
            return Err("a device name cannot be empty; `*` matches all".to_owned());
        }
        // The kernel's rule for names is dev_valid_name().
        let is_never = |c: &char| matches!(c, '/' | ':' | '\0') || c.is_whitespace();
        if let Some(never) = text.chars().find(is_never) {
            return Err(format!("a device name cannot contain {never:?}"));
        }
        let pattern = pattern(text)?;
        if shortest_match(text) > Self::LONGEST_NAME {
            return Err(format!("a device name has at most {} bytes", Self::LONGEST_NAME));
        }
        Ok(pattern)
    }
}

impl SocketGlob {
    /// Of sockaddr_un's sun_path, less its zero.
    const LONGEST_PATH: usize = 107;

    fn parse(text: &str) -> Result<Pattern, String> {
        if !text.starts_with(['/', '*']) {
            return Err("the path of a socket begins with `/`".to_owned());
        }
        if text.contains('\0') {
            return Err("a path cannot contain '\\0'".to_owned());
        }
        let pattern = pattern(text)?;
        if shortest_match(text) > Self::LONGEST_PATH {
            return Err(format!("the path of a socket has at most {} bytes", Self::LONGEST_PATH));
        }
        Ok(pattern)
    }
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::new(text).map_err(|_| {
        let single = with_single_stars(text);
        if single == text {
            "invalid pattern: `[` needs letters and a `]` after it".to_owned()
        } else {
            format!("a single `*` matches any letters; write `{}`", shortened(&single))
        }
    })
}

/// Adjacent stars become one. Within brackets they are letters.
fn with_single_stars(pattern: &str) -> String {
    let mut single = String::new();
    let mut is_set = false;
    for letter in pattern.chars() {
        is_set = if is_set { letter != ']' } else { letter == '[' };
        if is_set || letter != '*' || !single.ends_with('*') {
            single.push(letter);
        }
    }
    single
}

fn shortest_match(pattern: &str) -> usize {
    let mut length = 0;
    let mut rest = pattern.chars();
    while let Some(letter) = rest.next() {
        if letter == '[' {
            rest.by_ref().find(|letter| *letter == ']');
        }
        length += if letter == '*' { 0 } else { letter.len_utf8() };
    }
    length
}

impl Value for DeviceGlob {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        let text = text(value, "a pattern of device names, like \"vnet*\"", findings)?;
        checked(Self::parse(text), &value.span(), findings).map(Self)
    }
}

impl Value for SocketGlob {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        let text = text(value, "a pattern of paths, like \"/run/vcc-domain-*/card\"", findings)?;
        checked(Self::parse(text), &value.span(), findings).map(Self)
    }
}

inline_schema!(DeviceGlob, json_schema!({ "type": "string", "pattern": "^[^/\\s]+$" }));
inline_schema!(SocketGlob, json_schema!({ "type": "string", "pattern": "^[/*]" }));
