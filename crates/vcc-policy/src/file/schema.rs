//! The JSON schema of the whole file, for editors.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Value, json};

use super::tables::PolicyFile;

/// In the draft that editors for TOML know.
pub fn schema() -> String {
    let settings = SchemaSettings::draft07().with_transform(AsToml);
    let schema = settings.into_generator().into_root_schema_for::<PolicyFile>();
    serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n"
}

/// A key of TOML may be missing, but is never null; and a description is one paragraph, not the
/// lines of a comment.
#[derive(Clone)]
struct AsToml;

impl Transform for AsToml {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        for list in ["type", "enum", "anyOf"] {
            if let Some(Value::Array(alternatives)) = schema.get_mut(list) {
                let null = [json!(null), json!("null"), json!({ "type": "null" })];
                alternatives.retain(|alternative| !null.contains(alternative));
            }
        }
        collapse(schema);
        if let Some(Value::String(help)) = schema.get_mut("description") {
            *help = help.replace('\n', " ");
        }
    }
}

/// A single alternative is no alternative.
fn collapse(schema: &mut Schema) {
    let only = |schema: &Schema, list: &str| match schema.get(list) {
        Some(Value::Array(alternatives)) if alternatives.len() == 1 => {
            Some(alternatives[0].clone())
        }
        _ => None,
    };
    if let Some(only) = only(schema, "type") {
        schema.insert("type".into(), only);
    }
    if let Some(Value::Object(only)) = only(schema, "anyOf") {
        schema.remove("anyOf");
        for (key, value) in only {
            schema.insert(key, value);
        }
    }
}
