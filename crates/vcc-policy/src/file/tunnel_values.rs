//! Kinds of tunnels: one, or a list.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toml::Spanned;
use toml::de::DeValue;

use super::reader::{Value, text};
use super::value_schema::inline_schema;
use crate::nearest::suggestion;
use crate::problem::Findings;
use crate::text::shortened;
use crate::tunnels::{TunnelKind, Tunnels};

impl Value for Tunnels {
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Array(values) => values.iter().map(|value| kind(value, findings)).collect(),
            _ => kind(value, findings).map(|kind| [kind].into_iter().collect()),
        }
    }
}

fn kind(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<TunnelKind> {
    let name = text(value, "a kind of tunnel", findings)?;
    let found = TunnelKind::named(name);
    if found.is_none() {
        findings.error_with(&value.span(), || {
            let known = suggestion(name, TunnelKind::ALL.map(|kind| kind.name));
            format!("`{}` is not a kind of tunnel; {known}", shortened(name))
        });
    }
    found
}

inline_schema!(Tunnels, {
    let one = json_schema!({ "enum": TunnelKind::ALL.map(|kind| kind.name) });
    json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
});
