//! Records as JSON whose lines change only with what was measured: names sorted, a line for each
//! element of a list and of an object.

use super::Record;
use serde_json::Value;

pub fn text(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).expect("a record is JSON");
    let fields = value.as_object().into_iter().flatten().map(|(name, value)| {
        let name = Value::from(name.as_str());
        format!("  {name}: {}", field(value))
    });
    format!("{{\n{}\n}}\n", fields.collect::<Vec<_>>().join(",\n"))
}

fn field(value: &Value) -> String {
    let (lines, open, close): (Vec<String>, _, _) = match value {
        Value::Array(all) => (all.iter().map(Value::to_string).collect(), '[', ']'),
        Value::Object(all) => {
            let line = |(name, value): (&String, &Value)| {
                format!("{}: {value}", Value::from(name.as_str()))
            };
            (all.iter().map(line).collect(), '{', '}')
        }
        other => return other.to_string(),
    };
    if lines.is_empty() {
        return value.to_string();
    }
    format!("{open}\n    {}\n  {close}", lines.join(",\n    "))
}

pub fn parse(text: &[u8]) -> Result<Record, String> {
    let record: Record = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if record.format_version == super::FORMAT_VERSION {
        return Ok(record);
    }
    let (found, read) = (record.format_version, super::FORMAT_VERSION);
    Err(format!("has format_version {found}, and this vcc reads {read}"))
}
