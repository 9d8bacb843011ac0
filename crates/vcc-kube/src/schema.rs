//! The resources' definitions (CustomResourceDefinition), made from the schema of a policy file.
//!
//! The API server's schemas are structural: no references, and no choice between types but that between
//! an integer and a string. So what a file may write as a value or a list is a list here. Where a
//! sentence of the checker needs only the value, a validation rule (CEL) says the same sentence.

mod columns;
mod policy;

use serde_json::{Value, json};

use crate::resource::{GROUP, VERSION, policies, vcc_nodes};

/// Both definitions, as the API server wants them.
pub fn definitions() -> Vec<Value> {
    let policy = definition(
        &policies(),
        "vccpolicy",
        "vccp",
        "Chooses the congestion control on the fabric for connections of a cluster's pods.",
        policy::schema(),
        columns::of_policies(),
    );
    let node = definition(
        &vcc_nodes(),
        "vccnode",
        "vccn",
        "The state of the policies on one node, as reported by its agent.",
        json!({ "type": "object" }),
        columns::of_nodes(),
    );
    vec![policy, node]
}

fn definition(
    resource: &kube::api::ApiResource,
    singular: &str,
    short: &str,
    description: &str,
    spec: Value,
    columns: Value,
) -> Value {
    let is_policy = resource.plural == policies().plural;
    let mut schema = json!({
        "type": "object",
        "description": description,
        "properties": {
            "spec": spec,
            // Agents of different versions write it, so its fields are not restricted.
            "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        },
    });
    if is_policy {
        schema["required"] = json!(["spec"]);
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{}.{GROUP}", resource.plural) },
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {
                "kind": resource.kind,
                "listKind": format!("{}List", resource.kind),
                "plural": resource.plural,
                "singular": singular,
                "shortNames": [short],
                "categories": ["vcc"],
            },
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "additionalPrinterColumns": columns,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

/// The definitions as YAML, which JSON is a part of, with a line for each value.
pub fn yaml() -> String {
    let mut text = "# Made by `vcc generate crds`.\n".to_owned();
    for definition in definitions() {
        text += "---\n";
        text += &serde_saphyr::to_string(&definition).expect("JSON is YAML");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A structural schema has a type everywhere, and nothing that the API server refuses.
    fn check(schema: &Value, path: &str) {
        let Value::Object(keys) = schema else { panic!("{path}: {schema}") };
        let open = keys.contains_key("x-kubernetes-preserve-unknown-fields");
        let number = keys.contains_key("x-kubernetes-int-or-string");
        assert!(keys.contains_key("type") || open || number, "{path} has no type");
        for key in ["$ref", "oneOf", "allOf", "anyOf", "not", "const", "$schema", "title"] {
            assert!(!keys.contains_key(key), "{path} has {key}");
        }
        if let Some(Value::Object(properties)) = keys.get("properties") {
            properties.iter().for_each(|(key, schema)| check(schema, &format!("{path}.{key}")));
        }
        if let Some(items) = keys.get("items") {
            check(items, &format!("{path}[]"));
        }
    }

    #[test]
    fn the_schemas_are_structural() {
        for definition in definitions() {
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            check(schema, definition["metadata"]["name"].as_str().expect("a name"));
        }
    }

    #[test]
    fn the_policy_has_all_keys_of_a_file_and_its_own() {
        let file: Value = serde_json::from_str(&vcc_policy::schema()).expect("JSON");
        let keys = |schema: &Value| -> Vec<String> {
            schema["properties"].as_object().expect("keys").keys().cloned().collect()
        };
        let without = |mut all: Vec<String>, own: &[&str]| {
            for key in own {
                let before = all.len();
                all.retain(|it| it != key);
                assert_eq!(all.len() + 1, before, "{key}");
            }
            all
        };
        let spec = policy::schema();
        assert_eq!(without(keys(&spec), &["priority", "rollout"]), keys(&file));
        let (ports, rules) =
            (&spec["properties"]["ports"]["items"], &spec["properties"]["rules"]["items"]);
        let tables = &file["definitions"];
        assert_eq!(
            without(keys(ports), &["namespaces", "pods", "pods_may_choose"]),
            keys(&tables["PortTable"])
        );
        assert_eq!(
            without(keys(rules), &["peer_namespaces", "peer_pods"]),
            keys(&tables["RuleTable"])
        );
        assert_eq!(keys(&spec["properties"]["default"]), keys(&tables["DefaultTable"]));
    }
}
