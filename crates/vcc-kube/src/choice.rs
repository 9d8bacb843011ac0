//! The treatment that a pod asks for by its annotations, as far as a policy admits it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use vcc_policy::text::{char_boundary, printable_line};
use vcc_policy::{KEYS, Key, Kind, LONGEST_NAME_BYTES};

use crate::document::{Field, Wrong};

/// The annotations of a pod; they have the names of the keys.
pub const UNDERLAY_ANNOTATION: &str = "vcc.internal/underlay";
pub const MODE_ANNOTATION: &str = "vcc.internal/mode";
/// The key of a port that admits choices, and its keys.
pub const PODS_MAY_CHOOSE: &str = "pods_may_choose";
pub const UNDERLAYS: &str = "underlays";
pub const MODES: &str = "modes";

const MODE: &str = "mode";
const UNDERLAY: &str = "underlay";
const IGNORE: &str = "ignore";
const SHADOW: &str = "shadow";

/// What a pod asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Choice {
    pub underlay: Option<String>,
    pub mode: Option<String>,
}

/// What pods may ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admitted {
    pub underlays: Vec<String>,
    pub modes: Vec<String>,
}

impl Choice {
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Self {
        // No valid value is longer, and a pod's annotations may have 256 KiB.
        let value = |name: &str| {
            let value = annotations.get(name)?;
            Some(value[..char_boundary(value, value.len().min(LONGEST_NAME_BYTES))].to_owned())
        };
        Self { underlay: value(UNDERLAY_ANNOTATION), mode: value(MODE_ANNOTATION) }
    }

    pub fn is_none(&self) -> bool {
        self.underlay.is_none() && self.mode.is_none()
    }

    /// The words of it, as names of rules and classes have them.
    pub fn words(&self) -> String {
        let words: Vec<&str> = self.underlay.iter().chain(&self.mode).map(String::as_str).collect();
        words.join(" ")
    }

    /// The class of ports whose pods chose it.
    pub fn class(&self) -> String {
        format!("chosen: {}", self.words())
    }

    /// Why a policy's port does not admit it, if so.
    pub fn refusal(&self, admitted: Option<&Admitted>) -> Option<String> {
        let none = Admitted::default();
        let admitted = admitted.unwrap_or(&none);
        let parts = [
            (UNDERLAY_ANNOTATION, UNDERLAY, &self.underlay, &admitted.underlays),
            (MODE_ANNOTATION, MODE, &self.mode, &admitted.modes),
        ];
        parts.into_iter().find_map(|(annotation, key, value, admitted)| {
            let value = value.as_ref()?;
            let invalid = kind_of(key).parse(value).err();
            let why = match invalid {
                Some(why) => why,
                None if admitted.contains(value) => return None,
                None if admitted.is_empty() => {
                    format!("the cluster's policy lets this pod choose no {key}")
                }
                None => format!(
                    "the cluster's policy does not let this pod choose `{value}`, only {}",
                    admitted.join(", ")
                ),
            };
            Some(format!("{annotation}: {}", printable_line(&why)))
        })
    }

    /// A rule's table with what was chosen; None if that makes no difference. What the operator exempts
    /// stays exempt.
    pub fn apply(&self, table: &Map<String, Value>) -> Option<Map<String, Value>> {
        let is_exempt = table.get(MODE).and_then(Value::as_str) == Some(IGNORE);
        if is_exempt {
            return None;
        }
        let mut chosen = table.clone();
        if let Some(underlay) = &self.underlay {
            chosen.insert(UNDERLAY.to_owned(), json!(underlay));
        }
        match self.mode.as_deref() {
            Some(IGNORE) => KEYS.iter().for_each(|key| drop(chosen.remove(key.name))),
            Some(SHADOW) => put_in_shadow(&mut chosen),
            _ => {}
        }
        if let Some(mode) = &self.mode {
            chosen.insert(MODE.to_owned(), json!(mode));
        }
        (chosen != *table).then_some(chosen)
    }
}

/// Without the limits that are errors in shadow mode.
pub fn put_in_shadow(table: &mut Map<String, Value>) {
    table.insert(MODE.to_owned(), json!(SHADOW));
    for key in KEYS.iter().filter(|key| key.is_error_in_shadow()) {
        table.remove(key.name);
    }
}

fn kind_of(key: &str) -> &'static Kind {
    &Key::named(key).expect("a key of a treatment").kind
}

impl Admitted {
    /// Takes it out of a port's table.
    pub fn take(table: &mut Value, field: &Field, wrong: &mut Vec<Wrong>) -> Option<Self> {
        let value = table.as_object_mut()?.remove(PODS_MAY_CHOOSE)?;
        if value.is_null() {
            return None;
        }
        let field = field.key(PODS_MAY_CHOOSE);
        let Value::Object(keys) = value else {
            wrong.push((field, format!("must be a table of `{UNDERLAYS}` and `{MODES}`")));
            return None;
        };
        let mut admitted = Self::default();
        for (key, value) in keys.iter().filter(|(_, value)| !value.is_null()) {
            let field = field.key(key);
            match key.as_str() {
                UNDERLAYS => admitted.underlays = names(value, UNDERLAY, &field, wrong),
                MODES => admitted.modes = names(value, MODE, &field, wrong),
                _ => {
                    let key = vcc_policy::text::shortened(key);
                    let why = format!("unknown key `{key}`; known: {UNDERLAYS}, {MODES}");
                    wrong.push((field, why));
                }
            }
        }
        Some(admitted)
    }
}

fn names(value: &Value, key: &str, field: &Field, wrong: &mut Vec<Wrong>) -> Vec<String> {
    let Value::Array(values) = value else {
        wrong.push((field.clone(), "must be a list".to_owned()));
        return Vec::new();
    };
    let mut names = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let name = value.as_str().ok_or_else(|| format!("must be a name in quotes, not {value}"));
        match name.and_then(|name| kind_of(key).parse(name).map(|_| name)) {
            Ok(name) => names.push(name.to_owned()),
            Err(why) => wrong.push((field.at(index), why)),
        }
    }
    names
}

/// A choice that a node does not follow, which leaves the pod under the policy's own settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedChoice {
    pub namespace: String,
    pub pod: String,
    pub uid: String,
    pub why: String,
}

impl std::fmt::Display for RefusedChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { namespace, pod, why, .. } = self;
        write!(f, "pod {namespace}/{pod}: {why}; it keeps the policy's settings")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(underlay: Option<&str>, mode: Option<&str>) -> Choice {
        Choice { underlay: underlay.map(str::to_owned), mode: mode.map(str::to_owned) }
    }

    fn admitted(underlays: &[&str], modes: &[&str]) -> Admitted {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Admitted { underlays: names(underlays), modes: names(modes) }
    }

    #[test]
    fn only_what_is_admitted_is_followed() {
        let may = admitted(&["dctcp", "cubic"], &[]);
        assert_eq!(choice(Some("cubic"), None).refusal(Some(&may)), None);
        assert_eq!(
            choice(Some("reno"), None).refusal(Some(&may)).expect("refused"),
            "vcc.internal/underlay: the cluster's policy does not let this pod choose `reno`, only dctcp, cubic"
        );
        assert_eq!(
            choice(Some("cubic"), Some("shadow")).refusal(Some(&may)).expect("refused"),
            "vcc.internal/mode: the cluster's policy lets this pod choose no mode"
        );
        assert_eq!(
            choice(Some("dctpc"), None).refusal(None).expect("refused"),
            "vcc.internal/underlay: `dctpc` is not an underlay; the nearest is `dctcp`"
        );
    }

    #[test]
    fn a_long_annotation_is_shortened_and_printable() {
        let long = format!("\n{}", "\u{e9}".repeat(1000));
        let annotations = [(UNDERLAY_ANNOTATION.to_owned(), long)].into();
        let choice = Choice::from_annotations(&annotations);
        let why = choice.refusal(None).expect("refused");
        assert!(why.len() < 200 && !why.contains('\n'), "{why}");
    }

    #[test]
    fn a_choice_replaces_mode_and_underlay_alone() {
        let rule = |value: Value| value.as_object().cloned().expect("a table");
        let own =
            rule(json!({ "name": "r", "underlay": "cubic", "rate_cap": "1G", "delays": true }));
        assert_eq!(
            choice(Some("dctcp"), None).apply(&own),
            Some(rule(
                json!({ "name": "r", "underlay": "dctcp", "rate_cap": "1G", "delays": true })
            ))
        );
        assert_eq!(
            choice(None, Some("ignore")).apply(&own),
            Some(rule(json!({ "name": "r", "mode": "ignore" })))
        );
        assert_eq!(choice(Some("cubic"), None).apply(&own), None, "it is so already");
        let exempt = rule(json!({ "name": "r", "mode": "ignore" }));
        assert_eq!(choice(Some("dctcp"), Some("enforce")).apply(&exempt), None);
    }
}
