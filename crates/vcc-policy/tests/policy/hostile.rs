//! Whatever a file holds, reading it ends with a policy or with problems.

use vcc_policy::Policy;

use crate::random::Chance;

fn read(text: &str) {
    match Policy::parse(text, "hostile.toml") {
        Ok(checked) => {
            checked.policy.compile();
        }
        Err(wrong) => {
            assert!(wrong.errors() > 0, "refused without a reason: {text}");
            assert!(!wrong.to_string().is_empty());
        }
    }
}

const VALUES: [&str; 24] = [
    "0",
    "-1",
    "1",
    "0x10",
    "99999999999999999999999",
    "1.5",
    "nan",
    "-inf",
    "true",
    "\"\"",
    "\"*\"",
    "\"é\\u0000\"",
    "\"[\"",
    "\"0-0\"",
    "\"::/0\"",
    "\"1/1\"",
    "\"99999999999999999999d\"",
    "[]",
    "[[]]",
    "[1, \"a\"]",
    "{}",
    "{ name = 1 }",
    "1979-05-27",
    "\"\"\"a\nb\"\"\"",
];

#[test]
fn any_value_under_any_key() {
    let schema: serde_json::Value = serde_json::from_str(&vcc_policy::schema()).unwrap();
    let mut keys = 0;
    for (heading, table) in [
        ("[[ports]]", "PortTable"),
        ("[[pools]]", "PoolTable"),
        ("[[rules]]", "RuleTable"),
        ("[default]", "DefaultTable"),
    ] {
        for key in schema["definitions"][table]["properties"].as_object().unwrap().keys() {
            keys += 1;
            for value in VALUES {
                read(&format!("{heading}\n{key} = {value}\n"));
            }
        }
    }
    assert!(keys > 50, "{keys}");
    for value in VALUES {
        for key in ["ports", "pools", "rules", "default"] {
            read(&format!("{key} = {value}\n"));
        }
    }
}

#[test]
fn files_with_something_broken() {
    let whole = include_str!("../../../../packaging/policy.toml").to_owned()
        + &Chance::new(0).policy(10, 2)
        + "\u{feff}# é\t\"\"\"\r\n";
    let mut chance = Chance::new(1);
    for _ in 0..1500 {
        let mut bytes = whole.clone().into_bytes();
        for _ in 0..1 + chance.below(4) {
            let at = chance.below(bytes.len());
            match chance.below(4) {
                0 => bytes[at] = chance.pick(b"[]{}\"'=,.#\n\0\x1b\xff01-"),
                1 => drop(bytes.remove(at)),
                2 => bytes.truncate(at.max(1)),
                _ => {
                    let end = bytes.len().min(at + chance.below(60));
                    let piece = bytes[at..end].to_vec();
                    let into = chance.below(bytes.len());
                    bytes.splice(into..into, piece);
                }
            }
        }
        read(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn deep_and_long_ones() {
    read(&"[".repeat(100_000));
    read(&format!("rules = {}", "[".repeat(100_000)));
    read(&format!("rules = {}", "{a=".repeat(10_000)));
    read(&format!("a{} = 1", ".a".repeat(10_000)));
    read(&format!("{} = 1", "a".repeat(1_000_000)));
    read(&format!("[[ports]]\ndevice = \"{}b\"", "*a".repeat(10_000)));
}
