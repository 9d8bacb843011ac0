//! The keys of [`KEYS`] in a rule or in `[default]`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, json};
use toml::de::DeTable;

use super::reader::{Table, scalar};
use super::value_schema;
use crate::keys::{KEYS, Key};
use crate::problem::{Findings, Span};
use crate::settings::Settings;

#[derive(Clone, Debug)]
pub(crate) struct TreatmentKeys {
    pub settings: Settings,
    spans: Vec<(&'static str, Span)>,
}

impl TreatmentKeys {
    /// The name of the pool and its place.
    pub fn pool(&self) -> Option<(&str, &Span)> {
        let span = self.spans.iter().find(|(name, _)| *name == "pool");
        Some((self.settings.pool()?, &span?.1))
    }

    /// The place of a key's value.
    pub fn span(&self, key: &Key) -> Option<&Span> {
        self.spans.iter().find(|(name, _)| *name == key.name).map(|(_, span)| span)
    }
}

impl Table for TreatmentKeys {
    const HEADING: &'static str = "";

    fn keys(into: &mut Vec<&'static str>) {
        into.extend(KEYS.iter().map(|key| key.name));
    }

    fn fields(table: &DeTable<'_>, findings: &mut Findings<'_>) -> Self {
        let mut keys = Self { settings: Settings::default(), spans: Vec::new() };
        for key in KEYS {
            let Some(value) = table.get(key.name) else { continue };
            match key.kind.read(scalar(value.get_ref())) {
                Ok(read) => {
                    keys.settings.set(key, read);
                    keys.spans.push((key.name, value.span()));
                }
                Err(wrong) => findings.error(&value.span(), wrong),
            }
        }
        keys
    }
}

impl JsonSchema for TreatmentKeys {
    fn schema_name() -> Cow<'static, str> {
        "TreatmentKeys".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let properties: Map<_, _> =
            KEYS.iter().map(|key| (key.name.into(), property(key))).collect();
        json_schema!({ "type": "object", "properties": properties })
    }
}

fn property(key: &Key) -> serde_json::Value {
    let mut schema = value_schema::for_kind(&key.kind);
    let mut description = key.help();
    if let Some(default) = key.default() {
        description += &format!(" By default {}.", key.kind.show(default));
    }
    schema.insert("description".into(), json!(description));
    schema.into()
}
