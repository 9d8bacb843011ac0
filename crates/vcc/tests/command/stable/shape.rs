//! The shape of JSON: which keys there are, and what their values are.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// By path: `[]` stands for the elements of an array. A null has no type.
#[derive(Default)]
pub struct Shape(BTreeMap<String, BTreeSet<&'static str>>);

const NULL: &str = "null";

impl Shape {
    /// Adds a document; `name` is where the paths begin.
    pub fn add(&mut self, name: &str, value: &Value) {
        let kind = match value {
            Value::Null => NULL,
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        self.0.entry(name.to_owned()).or_default().insert(kind);
        match value {
            Value::Array(elements) => {
                elements.iter().for_each(|element| self.add(&format!("{name}[]"), element));
            }
            Value::Object(members) => {
                members.iter().for_each(|(key, member)| self.add(&format!("{name}.{key}"), member));
            }
            _ => {}
        }
    }

    /// `PATH TYPE`, for each. `PATH null` of one whose type was never seen, unless `is_known`.
    pub fn lines(&self, is_known: impl Fn(&str) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        for (path, kinds) in &self.0 {
            let is_all = kinds.len() == 1 && !is_known(path);
            let named = kinds.iter().filter(|kind| **kind != NULL || is_all);
            lines.extend(named.map(|kind| format!("{path} {kind}")));
        }
        lines
    }

    /// Whether a line holds: what it names is there, and of that type where it is known.
    pub fn holds(&self, line: &str) -> bool {
        let Some((path, kind)) = line.rsplit_once(' ') else { return false };
        match self.0.get(path) {
            Some(kinds) => {
                kind == NULL || kinds.contains(kind) || kinds.iter().all(|it| *it == NULL)
            }
            None => self.is_unknown(path),
        }
    }

    /// Whether it lies within what was null.
    fn is_unknown(&self, path: &str) -> bool {
        let ends = path.match_indices(['.', '[']).map(|(end, _)| &path[..end]);
        ends.filter_map(|outer| self.0.get(outer)).any(|kinds| kinds.contains(NULL))
    }
}

#[test]
fn what_is_gone_or_of_another_type_does_not_hold() {
    let mut shape = Shape::default();
    let document = serde_json::json!({"a": 1, "list": [{"b": "x"}, {"b": null}], "none": null});
    shape.add("it", &document);
    let lines: Vec<String> = shape.lines(|path| path == "it.none");
    assert_eq!(
        lines,
        ["it object", "it.a number", "it.list array", "it.list[] object", "it.list[].b string"]
    );
    for (line, holds) in [
        ("it.a number", true),
        ("it.a string", false),
        ("it.list[].b string", true),
        ("it.list[].c string", false),
        ("it.gone number", false),
        ("it.none.within number", true),
        ("it.none array", true),
        ("it.a null", true),
        ("it.gone null", false),
    ] {
        assert_eq!(shape.holds(line), holds, "{line}");
    }
}
