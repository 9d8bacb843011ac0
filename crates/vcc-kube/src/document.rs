//! A policy's text, written from JSON: each line knows the field that it comes from, so that what is
//! wrong with it is reported for that field.

use serde_json::Value;
use vcc_policy::Problem;

#[derive(Default)]
pub struct Document {
    text: String,
    /// By line: the field that the line comes from.
    fields: Vec<Option<Field>>,
}

/// A field of an object, such as `spec.rules[2].underlay` of the policy `web`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The index of the policy among those of the document.
    pub policy: usize,
    pub path: String,
}

/// A field and its error.
pub type Wrong = (Field, String);

impl Field {
    pub fn new(policy: usize, path: impl Into<String>) -> Self {
        Self { policy, path: path.into() }
    }

    pub fn key(&self, key: &str) -> Self {
        Self { policy: self.policy, path: format!("{}.{key}", self.path) }
    }

    pub fn at(&self, index: usize) -> Self {
        Self { policy: self.policy, path: format!("{}[{index}]", self.path) }
    }
}

impl Document {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn into_text(self) -> String {
        self.text
    }

    fn line(&mut self, line: &str, field: Option<&Field>) {
        debug_assert!(!line.contains('\n'), "a line is one line: {line}");
        self.text += line;
        self.text.push('\n');
        self.fields.push(field.cloned());
    }

    pub fn comment(&mut self, comment: &str) {
        self.line(&format!("# {}", vcc_policy::text::printable_line(comment)), None);
    }

    /// Begins a table, like `[[rules]]`.
    pub fn heading(&mut self, heading: &str, field: Option<&Field>) {
        self.line(heading, field);
    }

    /// Writes a key and its value; a list has a line for each of its values. Null is left out: to the
    /// API server it is as a key that is missing.
    pub fn key(&mut self, key: &str, value: &Value, field: Option<&Field>) {
        let key = if is_bare(key) { key.to_owned() } else { string(key) };
        match value {
            Value::Null => {}
            Value::Array(values) if !values.is_empty() => {
                self.line(&format!("{key} = ["), field);
                for (index, value) in values.iter().enumerate() {
                    let place = field.map(|field| field.at(index));
                    self.line(&format!("{},", inline(value)), place.as_ref());
                }
                self.line("]", field);
            }
            value => self.line(&format!("{key} = {}", inline(value)), field),
        }
    }

    /// The field that a problem is about; None if it is about no line of an object.
    pub fn field_of(&self, problem: &Problem) -> Option<&Field> {
        self.fields.get(problem.line.checked_sub(1)?)?.as_ref()
    }

    /// A problem's message, with fields for the lines that it names.
    pub fn message(&self, problem: &Problem) -> String {
        const MENTION: &str = "line ";
        let mut message = String::new();
        let mut rest = problem.message.as_str();
        while let Some(at) = rest.find(MENTION) {
            let after = &rest[at + MENTION.len()..];
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            let number = after[..digits].parse::<usize>().ok();
            let field = number.and_then(|line| self.fields.get(line.checked_sub(1)?)?.as_ref());
            match field {
                Some(field) => {
                    message += &rest[..at];
                    message += &field.path;
                    rest = &after[digits..];
                }
                None => {
                    message += &rest[..at + MENTION.len()];
                    rest = after;
                }
            }
        }
        message + rest
    }
}

fn is_bare(key: &str) -> bool {
    !key.is_empty()
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// JSON's strings are TOML's, but for one character.
fn string(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

fn inline(value: &Value) -> String {
    match value {
        // TOML has no null: the checker says what is wanted instead.
        Value::Null => "{}".to_owned(),
        Value::String(text) => string(text),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(inline).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(keys) => {
            let pair =
                |(key, value): (&String, &Value)| format!("{} = {}", string(key), inline(value));
            let pairs: Vec<String> =
                keys.iter().filter(|(_, value)| !value.is_null()).map(pair).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use vcc_policy::Policy;

    use super::*;

    #[test]
    fn an_error_names_its_field() {
        let mut document = Document::default();
        let root = Field::new(0, "spec");
        document.comment("a \n policy");
        for index in 0..2 {
            let rule = root.key("rules").at(index);
            document.heading("[[rules]]", Some(&rule));
            document.key("name", &json!("a"), Some(&rule.key("name")));
            document.key("peer", &json!(["10.0.0.0/8", "x"]), Some(&rule.key("peer")));
            document.key("underlay", &json!("dctpc"), Some(&rule.key("underlay")));
            document.key("weight", &Value::Null, Some(&rule.key("weight")));
        }
        let problems = Policy::parse(document.text(), "p").expect_err("wrong").problems;
        let messages: Vec<String> = problems
            .iter()
            .filter_map(|problem| {
                let field = document.field_of(problem)?;
                Some(format!("{}: {}", field.path, document.message(problem)))
            })
            .collect();
        let network = "`x` is not a network, like 10.0.0.0/8 or fd00::/8, or an address";
        let underlay = "`dctpc` is not an underlay; the nearest is `dctcp`";
        let expected = [
            format!("spec.rules[0].peer[1]: {network}"),
            format!("spec.rules[0].underlay: {underlay}"),
            "spec.rules[1].name: the rule in spec.rules[0].name also has the name `a`".to_owned(),
            format!("spec.rules[1].peer[1]: {network}"),
            format!("spec.rules[1].underlay: {underlay}"),
        ];
        assert_eq!(messages, expected);
    }

    #[test]
    fn any_value_becomes_one_line_of_toml() {
        let odd = "q\"\\\u{7f}\u{1}\n\u{2028}é'";
        for value in
            [json!(odd), json!(null), json!({ odd: [odd, null, 1.5, true] }), json!(u64::MAX)]
        {
            let mut document = Document::default();
            document.key(odd, &json!([value]), None);
            let found = Policy::parse(document.text(), "p");
            let problems = found.expect_err("an unknown key").problems;
            assert!(problems.iter().all(|it| !it.message.contains("expected")), "{problems:?}");
            assert_eq!(document.text().lines().count(), 3, "{}", document.text());
        }
    }
}
