//! The schema of a VccPolicy's spec.

use serde_json::{Map, Value, json};
use vcc_policy::{KEYS, Kind, MAX_POOLS, MAX_RULES, MAX_SELECTORS, Scalar};

use crate::check::twofold_port;
use crate::choice::{MODE_ANNOTATION, MODES, PODS_MAY_CHOOSE, UNDERLAY_ANNOTATION, UNDERLAYS};
use crate::spec::{
    CANARY, CHOICE_WITH_CLASS, CHOICE_WITHOUT_PODS, DEFAULT_PRIORITY, PEER_SELECTORS,
    PORT_SELECTORS, PRIORITIES, PRIORITY, ROLLOUT, SHADOW,
};

/// A list's longest length, by its key: the API server counts what a rule may cost.
const LONGEST_LISTS: &[(&str, usize)] = &[
    ("ports", MAX_SELECTORS),
    ("pools", MAX_POOLS),
    ("rules", MAX_RULES - 1),
    ("inside", 16),
    ("tenant", 256),
    ("class", 256),
    ("peer", 4096),
    ("guest_port", 1024),
    ("peer_port", 1024),
    ("vlan", 4095),
];

pub fn schema() -> Value {
    let file: Value = serde_json::from_str(&vcc_policy::schema()).expect("a schema is JSON");
    let definitions = &file["definitions"];
    let mut spec = structural("spec", &file, definitions);
    let properties = spec["properties"].as_object_mut().expect("a table");
    let (first, last) = PRIORITIES.into_inner();
    properties.insert(
        PRIORITY.to_owned(),
        json!({
            "description": "The policy with the lowest number is first; no two policies have the same number.",
            "type": "integer",
            "default": DEFAULT_PRIORITY,
            "x-kubernetes-validations": [{
                "rule": format!("self >= {first} && self <= {last}"),
                "message": format!("must be {first} to {last}"),
            }],
        }),
    );
    properties.insert(ROLLOUT.to_owned(), rollout());
    let selector = |of: &str| label_selector(of);
    let may_choose = pods_may_choose(&properties["rules"]["items"]["properties"]);
    let ports = properties["ports"]["items"].as_object_mut().expect("a table");
    ports.remove("oneOf");
    let own = ports["properties"].as_object_mut().expect("a table");
    own.insert(
        PORT_SELECTORS[0].into(),
        selector("namespaces of the pods whose devices these ports are"),
    );
    own.insert(PORT_SELECTORS[1].into(), selector("pods whose devices these ports are"));
    own.insert(PODS_MAY_CHOOSE.into(), may_choose);
    ports.insert("x-kubernetes-validations".into(), port_rules());
    let rules = properties["rules"]["items"]["properties"].as_object_mut().expect("a table");
    rules.insert(
        PEER_SELECTORS[0].into(),
        selector("namespaces of pods that are peers, besides `peer`"),
    );
    rules.insert(PEER_SELECTORS[1].into(), selector("pods that are peers, besides `peer`"));

    spec
}

fn rollout() -> Value {
    json!({
        "description": "How the policy is rolled out to the nodes.",
        "type": "object",
        // What is left of it when server-side apply takes the last key away.
        "nullable": true,
        "properties": {
            CANARY: {
                "description": "The share of nodes on which the policy is enforced, such as \
                                \"10%\", chosen by a hash of their names; without it, all nodes.",
                "type": "string",
                "maxLength": 8,
                "x-kubernetes-validations": [{
                    "rule": "self.matches('^(100([.]0{1,2})?|0*[0-9]{1,2}([.][0-9]{1,2})?)%$')",
                    "messageExpression":
                        "'`' + self + '` is not a share of the nodes, from \"0%\" to \"100%\"'",
                }],
            },
            SHADOW: {
                "description": "The other nodes, or all without a canary, run the policy in shadow \
                                mode: they compute and report, and change nothing. Else they are as \
                                without the policy.",
                "type": "boolean",
            },
        },
    })
}

/// `rule`: the keys of a rule.
fn pods_may_choose(rule: &Value) -> Value {
    let list = |key: &str, annotation: &str| {
        let mut values = rule[key].clone();
        values.as_object_mut().expect("a schema").remove("description");
        json!({
            "description": format!("Values that pods may have in the annotation {annotation}."),
            "type": "array",
            "maxItems": 64,
            "items": values,
        })
    };
    json!({
        "description": "What these pods may choose by their annotations, in place of what rules and the \
                        default say. By default nothing.",
        "type": "object",
        "properties": {
            UNDERLAYS: list("underlay", UNDERLAY_ANNOTATION),
            MODES: list("mode", MODE_ANNOTATION),
        },
    })
}

fn label_selector(of: &str) -> Value {
    json!({
        "description": format!("Labels of the {of}: an empty selector means all."),
        "type": "object",
        "properties": {
            "matchLabels": { "type": "object", "additionalProperties": { "type": "string" } },
            "matchExpressions": {
                "type": "array",
                "maxItems": 64,
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": { "type": "string" },
                        "operator": { "type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"] },
                        "values": { "type": "array", "maxItems": 256, "items": { "type": "string" } },
                    },
                },
            },
        },
    })
}

fn port_rules() -> Value {
    let [namespaces, pods] = PORT_SELECTORS;
    let has_selector = format!("(has(self.{namespaces}) || has(self.{pods}))");
    let not_both = |key: &str| {
        json!({
            "rule": format!("!(has(self.{key}) && {has_selector})"),
            "message": twofold_port(key),
        })
    };
    json!([
        not_both("device"),
        not_both("socket"),
        {
            "rule": format!("!has(self.{PODS_MAY_CHOOSE}) || {has_selector}"),
            "message": CHOICE_WITHOUT_PODS,
        },
        {
            "rule": format!("!(has(self.{PODS_MAY_CHOOSE}) && has(self.class))"),
            "message": CHOICE_WITH_CLASS,
        },
        {
            "rule": "!(has(self.device) && has(self.socket))",
            "message": "a port has a `device` or a `socket`, not both",
        },
        {
            "rule": format!("has(self.device) || has(self.socket) || {has_selector}"),
            "message": format!("a port has `{namespaces}`, `{pods}`, a `device` or a `socket`"),
        },
    ])
}

/// A schema of the file's as the API server wants it.
fn structural(key: &str, schema: &Value, definitions: &Value) -> Value {
    let mut schema = resolved(schema, definitions);
    let description = schema.remove("description");
    let mut result = match schema.remove("anyOf") {
        Some(Value::Array(choices)) => of_choices(key, &choices, definitions),
        _ => Value::Object(schema),
    };
    let keys = result.as_object_mut().expect("a schema");
    for odd in ["$schema", "title", "definitions", "additionalProperties", "oneOf"] {
        keys.remove(odd);
    }
    if keys.contains_key("enum") {
        keys.insert("type".to_owned(), json!("string"));
    }
    if let Some(description) = description {
        keys.insert("description".to_owned(), description);
    }
    if let Some(Value::Object(properties)) = keys.get_mut("properties") {
        for (key, schema) in properties {
            *schema = structural(key, schema, definitions);
        }
    }
    if let Some(items) = keys.get_mut("items") {
        *items = structural(key, items, definitions);
    }
    if keys.get("type") == Some(&json!("array")) {
        let longest = LONGEST_LISTS.iter().find(|(list, _)| *list == key);
        let (_, longest) = longest.unwrap_or_else(|| panic!("{key} has no longest length"));
        keys.insert("maxItems".to_owned(), json!(longest));
    }
    say_as_the_checker(key, keys);
    result
}

/// The schema itself, for one that refers to it.
fn resolved(schema: &Value, definitions: &Value) -> Map<String, Value> {
    let mut own = schema.as_object().cloned().unwrap_or_default();
    let Some(Value::String(reference)) = own.remove("$ref") else { return own };
    let name = reference.rsplit('/').next().unwrap_or_default();
    let mut meant = definitions[name].as_object().cloned().unwrap_or_default();
    meant.extend(own);
    meant
}

/// A value or a list of them is a list; an integer or a string stays one.
fn of_choices(key: &str, choices: &[Value], definitions: &Value) -> Value {
    let kind = |wanted: &str| choices.iter().find(|choice| choice["type"] == wanted);
    if let Some(list) = kind("array") {
        return structural(key, list, definitions);
    }
    match (kind("integer"), kind("string")) {
        (Some(_), Some(_)) => json!({ "x-kubernetes-int-or-string": true }),
        _ => panic!("{key}: no structural schema has these choices: {choices:?}"),
    }
}

/// A whole number beyond its bounds gets the sentence that it gets in a file, but for its end: the API
/// server says the value itself.
fn say_as_the_checker(key: &str, schema: &mut Map<String, Value>) {
    let Some(known) = KEYS.iter().find(|known| known.name == key) else { return };
    let Kind::Count { min, max } = known.kind else { return };
    let beyond = i64::from(max) + 1;
    let Err(sentence) = known.kind.read(Scalar::Integer(Some(beyond))) else { return };
    let Some(sentence) = sentence.strip_suffix(&format!(", not {beyond}")) else { return };
    schema.remove("minimum");
    schema.remove("maximum");
    let rule = format!("self >= {min} && self <= {max}");
    let rules = json!([{ "rule": rule, "message": sentence }]);
    schema.insert("x-kubernetes-validations".to_owned(), rules);
}
