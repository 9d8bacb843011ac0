//! The file's JSON schema, for editors.

use schemars::generate::SchemaSettings;

use super::tables::PolicyFile;

/// In the draft that TOML's editors know.
pub fn schema() -> String {
    let generator = SchemaSettings::draft07().into_generator();
    let schema = generator.into_root_schema_for::<PolicyFile>();
    serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n"
}
