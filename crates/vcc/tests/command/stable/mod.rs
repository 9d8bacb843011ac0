//! What docs/stability.md promises, against files that say what it was.

mod golden;
mod json;
mod shape;

use std::collections::BTreeSet;

use serde_json::Value;
use vcc_engine::{Field, export};
use vcc_kube::status::{Activity, Group, NodeStatus, PolicyOnNode, PolicyStatus};

use golden::Golden;
use shape::Shape;

/// The keys that a JSON schema has below `at`, with the types and the words that they take.
fn add_keys(schema: &Value, at: &Value, path: &str, found: &mut BTreeSet<String>) {
    if let Some(name) = at["$ref"].as_str().and_then(|name| name.strip_prefix("#/definitions/")) {
        add_keys(schema, &schema["definitions"][name], path, found);
    }
    for one in ["anyOf", "oneOf"].iter().filter_map(|key| at[key].as_array()).flatten() {
        add_keys(schema, one, path, found);
    }
    let types = at["type"]
        .as_str()
        .into_iter()
        .chain(at["type"].as_array().into_iter().flatten().filter_map(Value::as_str));
    found.extend(types.map(|kind| format!("{path} {kind}")));
    let words = at["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    found.extend(words.map(|word| format!("{path} \"{word}\"")));
    if at["items"].is_object() {
        add_keys(schema, &at["items"], &format!("{path}[]"), found);
    }
    for (key, member) in at["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        add_keys(schema, member, &path, found);
    }
}

#[test]
fn policy_keys() {
    let schema: Value =
        serde_json::from_str(&crate::vcc("policy schema").well()).expect("a schema");
    let mut found = BTreeSet::new();
    for (key, table) in schema["properties"].as_object().expect("tables") {
        add_keys(&schema, table, key, &mut found);
    }
    assert!(found.contains("rules[].underlay \"dctcp\""), "{found:#?}");
    assert!(found.contains("ports[].device string"), "{found:#?}");
    Golden::read("policy").assert_all(&found);
}

/// What a cluster has: the versions of the resources, what may be in a spec, what is in a status, and the
/// columns of `kubectl get`.
#[test]
fn resources() {
    let (some, text) = (Some(Activity::default()), vec![String::new()]);
    let policies = vec![PolicyOnNode { messages: text.clone(), ..PolicyOnNode::default() }];
    let node = NodeStatus { policies, activity: some, problems: text, ..NodeStatus::default() };
    let (canary, others) = (Some(Group::default()), Some(Group::default()));
    let policy = PolicyStatus { canary, others, ..PolicyStatus::default() };
    let statuses = [serde_json::to_value(policy), serde_json::to_value(node)];
    let mut found = BTreeSet::new();
    for (definition, status) in vcc_kube::schema::definitions().iter().zip(statuses) {
        let (spec, name) = (&definition["spec"], definition["metadata"]["name"].as_str());
        let (kind, name) = (spec["names"]["kind"].as_str().expect("a kind"), name.expect("a name"));
        for version in spec["versions"].as_array().expect("versions") {
            let of = |key: &str| version[key].as_str().expect("a text");
            found.insert(format!("{name} {}", of("name")));
            let schema = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
            add_keys(schema, schema, &format!("{kind}.spec"), &mut found);
            for column in version["additionalPrinterColumns"].as_array().expect("columns") {
                let of = |key: &str| column[key].as_str().expect("a text");
                found.insert(format!("{kind} column {} {}", of("name"), of("jsonPath")));
            }
        }
        let mut shape = Shape::default();
        shape.add(&format!("{kind}.status"), &status.expect("JSON"));
        found.extend(shape.lines(|_| false));
    }
    assert!(found.contains("VccNode.status.policies[].inForce number"), "{found:#?}");
    Golden::read("resources").assert_all(&found);
}

/// Metrics, with their kinds and labels.
#[test]
fn metrics() {
    let line = |metric: &vcc_web::Metric| {
        format!("{} {} {}", metric.name, metric.kind.name(), metric.labels.join(","))
            .trim()
            .to_owned()
    };
    Golden::read("metrics").assert_all(&vcc_web::METRICS.iter().map(line).collect());
}

/// What `vcc export` says of a connection; also what one version reads of another's maps.
#[test]
fn fields_of_an_export() {
    let lines = Field::ALL.iter().map(|field| format!("{} {}", field.name, field.place));
    let format = format!("format {}", export::FORMAT);
    Golden::read("export").assert_all(&lines.chain([format]).collect());
}

/// Commands and their options.
#[test]
fn commands_and_options() {
    let mut found = BTreeSet::new();
    add_command("vcc", &mut found);
    assert!(found.contains("vcc flows --json"), "{found:#?}");
    Golden::read("commands").assert_all(&found);
}

fn add_command(command: &str, found: &mut BTreeSet<String>) {
    let arguments = command.strip_prefix("vcc").expect("our name");
    let help = crate::vcc(&format!("{arguments} -h")).well();
    found.insert(command.to_owned());
    let mut is_list = false;
    for line in help.lines() {
        if !line.starts_with(' ') {
            is_list = line == "Commands:";
            continue;
        }
        let words: Vec<&str> =
            line.split([' ', ',', '=']).filter(|word| !word.is_empty()).collect();
        let [first, rest @ ..] = &words[..] else { continue };
        if is_list && *first != "help" {
            add_command(&format!("{command} {first}"), found);
        }
        // `-h, --help`, or only the one with two.
        let long =
            [Some(first), rest.first()].into_iter().flatten().find(|it| it.starts_with("--"));
        if let Some(option) = long.filter(|_| first.starts_with('-')) {
            found.insert(format!("{command} {option}"));
        }
    }
}
