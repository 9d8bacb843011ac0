//! Large policies.

use std::fmt::Write;
use std::time::Instant;

use vcc_policy::{MAX_RULES, MAX_SELECTORS, Policy};

fn policy(rules: usize, networks_each: usize) -> String {
    let mut text = "[[ports]]\ndevice = \"*\"\n".to_owned();
    for rule in 0..rules {
        let networks: Vec<String> = (0..networks_each)
            .map(|n| format!("\"10.{}.{}.{}/32\"", rule >> 8, rule & 0xff, n & 0xff))
            .collect();
        let (first, last) = (1 + rule * 20, 1 + rule * 20 + 30);
        let networks = networks.join(", ");
        writeln!(
            text,
            "[[rules]]\nname = \"r{rule}\"\npeer = [{networks}]\nguest_port = \"{first}-{last}\""
        )
        .unwrap();
    }
    text
}

#[test]
fn a_thousand_rules_and_ten_thousand_networks() {
    let text = policy(1000, 10);
    let begin = Instant::now();
    let checked = Policy::parse(&text, "large.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let read = begin.elapsed();
    let begin = Instant::now();
    let compiled = checked.policy.compile();
    println!("read and checked in {read:?}, compiled in {:?}", begin.elapsed());
    assert_eq!(checked.warnings, []);
    assert_eq!(compiled.prefixes.len(), 10_000);
}

#[test]
fn as_many_rules_as_there_can_be_and_one_more() {
    let most = Policy::parse(&policy(MAX_RULES - 1, 1), "large.toml").expect("a policy");
    assert_eq!(most.policy.rules().len(), MAX_RULES);
    let wrong = Policy::parse(&policy(MAX_RULES, 1), "large.toml").expect_err("too many");
    assert_eq!(wrong.errors(), 1);
    let message = &wrong.problems[0].message;
    assert_eq!(message, "too many rules: 1024; at most 1023 are possible");
}

#[test]
fn too_many_networks() {
    let wrong = Policy::parse(&policy(1000, 20), "large.toml").expect_err("too many");
    let message = &wrong.problems[0].message;
    assert_eq!(message, "too many networks in all rules: 20000; at most 16384 are possible");
}

#[test]
fn as_many_ports_as_there_can_be_and_one_more() {
    let ports = |count: usize| {
        (0..count).map(|n| format!("[[ports]]\ndevice = \"v{n}x*\"\n")).collect::<String>()
    };
    let most = Policy::parse(&ports(MAX_SELECTORS), "large.toml").expect("a policy");
    assert_eq!(most.policy.ports().len(), MAX_SELECTORS);
    let wrong = Policy::parse(&ports(MAX_SELECTORS + 1), "large.toml").expect_err("too many");
    assert_eq!(wrong.errors(), 1);
    let message = &wrong.problems[0].message;
    assert_eq!(message, "too many [[ports]]: 4097; at most 4096 are possible");
}

/// Work that grows with the square of the length takes minutes.
#[test]
fn a_large_file_full_of_mistakes_is_read_soon() {
    let tenants = |count: usize| {
        (0..count).map(|n| format!("[[ports]]\ndevice='v{n}'\ntenant='{n}'\n")).collect::<String>()
    };
    // The counts are close to the maximum for a file.
    for (what, begin, piece, count) in [
        ("ports", String::new(), "[[ports]]\ndevice='v9*'\n", 48_000),
        ("errors in a long line", "[[rules]]\nname='x'\nvlan=[".to_owned(), "-9,", 240_000),
        ("tenants", tenants(4000) + "[[rules]]\nname='x'\ntenant=[", "'unknown',", 200_000),
    ] {
        let mut text = begin.clone() + &piece.repeat(count);
        text += if begin.ends_with('[') { "]" } else { "" };
        let began = Instant::now();
        assert!(text.len() > 700_000, "{what}: {} bytes", text.len());
        let shown = match Policy::parse(&text, "large.toml") {
            Ok(checked) => checked.warnings.len(),
            Err(wrong) => {
                let message = wrong.to_string();
                assert!(!message.contains("the file is too long"), "{what}: {message}");
                wrong.problems.len()
            }
        };
        println!("{what}: {:?}, {shown} shown", began.elapsed());
        assert!((1..=101).contains(&shown), "{what}: {shown}");
        assert!(began.elapsed().as_secs() < 60, "{what}: {:?}", began.elapsed());
    }
}
