//! The JSON schema of a key's value.

use schemars::{Schema, json_schema};

use crate::keys::Kind;
use crate::name;

pub(super) fn for_kind(kind: &Kind) -> Schema {
    match *kind {
        Kind::Flag => json_schema!({ "type": "boolean" }),
        Kind::Name { values, .. } => {
            let names: Vec<&str> = values().into_iter().map(|(name, _)| name).collect();
            json_schema!({ "enum": names })
        }
        Kind::Count { min, max } => {
            json_schema!({ "type": "integer", "minimum": min, "maximum": max })
        }
        Kind::Size { min, max } => json_schema!({ "anyOf": [
            { "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?[KkMmGg]?$" },
            { "type": "integer", "minimum": min, "maximum": max },
        ] }),
        Kind::Rate => json_schema!({ "anyOf": [
            { "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?[KkMmGg]?$" },
            { "type": "integer", "minimum": 8000 },
        ] }),
        Kind::Time { .. } => json_schema!({
            "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?(us|ms|s|min|h|d)$"
        }),
        Kind::Fraction => json_schema!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Kind::Pool => json_schema!({
            "type": "string", "minLength": 1, "maxLength": name::LONGEST_BYTES
        }),
    }
}

/// A schema that stands where it is used.
macro_rules! inline_schema {
    ($type:ty, $schema:expr) => {
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}
pub(super) use inline_schema;
