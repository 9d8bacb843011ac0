//! Files beside the code that have to agree with it.

use std::collections::BTreeSet;

use vcc_engine::Mode;
use vcc_policy::{Policy, docs};

const WRITE: &str = "is stale; write it with `cargo run -p vcc-policy --example docs`";

#[test]
fn the_schema_is_the_generated_one() {
    let kept = include_str!("../../../../docs/policy.schema.json");
    assert!(kept == vcc_policy::schema(), "docs/policy.schema.json {WRITE}");
}

#[test]
fn the_tables_of_the_documentation_are_the_generated_ones() {
    let policy = include_str!("../../../../docs/policy.md");
    let underlays = include_str!("../../../../docs/congestion-control.md");
    for (file, page, name, part) in [
        ("docs/policy.md", policy, "keys", docs::keys()),
        ("docs/congestion-control.md", underlays, "underlays", docs::underlays()),
    ] {
        let generated = docs::replaced(page, name, &part);
        assert!(generated.as_deref() == Some(page), "the table of {name} in {file} {WRITE}");
    }
}

#[test]
fn the_packaged_policy_enforces_nothing() {
    let text = include_str!("../../../../packaging/policy.toml");
    let checked = Policy::parse(text, "policy.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(checked.warnings, []);
    for rule in checked.policy.rules() {
        assert_ne!(rule.treatment().mode(), Mode::Enforce, "{}", rule.name());
    }
}

/// The examples of docs/policy.md.
fn examples() -> Vec<String> {
    examples_in(include_str!("../../../../docs/policy.md"))
}

/// What stands between a page's fences of TOML.
fn examples_in(page: &str) -> Vec<String> {
    let fenced = page.split("```toml\n").skip(1);
    fenced.map(|part| part.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_examples_can_be_used() {
    let platforms = examples_in(include_str!("../../../../docs/platforms.md"));
    for (page, examples) in [("policy.md", examples()), ("platforms.md", platforms)] {
        assert!(!examples.is_empty(), "{page}");
        for example in examples {
            let checked = Policy::parse(&example, page).unwrap_or_else(|wrong| panic!("{wrong}"));
            assert_eq!(checked.warnings, [], "{example}");
        }
    }
}

#[test]
fn every_key_is_documented() {
    let text = include_str!("../../../../docs/policy.md");
    let schema: serde_json::Value = serde_json::from_str(&vcc_policy::schema()).unwrap();
    let tables = schema["definitions"].as_object().unwrap().values();
    let keys: BTreeSet<&String> =
        tables.flat_map(|table| table["properties"].as_object().unwrap().keys()).collect();
    for key in keys {
        assert!(text.contains(&format!("| `{key}` |")), "{key} is not in docs/policy.md");
        let used = examples().iter().any(|example| example.contains(&format!("\n{key} = ")));
        assert!(used, "{key} is in none of its examples");
    }
}
