//! Properties of every policy, tested on random policies.

use std::collections::HashSet;

use vcc_policy::{Checked, MAX_PREFIXES, MAX_SETS, Policy};

use crate::random::Chance;

/// Few rules that ask for much, many that ask for little, and what lies between.
fn policies() -> impl Iterator<Item = (u64, Checked, Chance)> {
    (0..300).map(|seed| {
        let mut chance = Chance::new(seed);
        let rules = 1 + chance.below([5, 20, 200][seed as usize % 3]);
        let rarity = 1 + chance.below(4);
        let text = chance.policy(rules, rarity);
        let checked = Policy::parse(&text, "chance.toml")
            .unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        (seed, checked, chance)
    })
}

#[test]
fn the_tables_find_the_rule_that_comes_first() {
    let mut matched = HashSet::new();
    for (seed, Checked { policy, .. }, mut chance) in policies() {
        let compiled = policy.compile();
        for _ in 0..500 {
            let c = chance.connection();
            let tenant = compiled.port_set(c.affiliation());
            let rule = policy.judge(&c);
            assert_eq!(compiled.judge(&tenant, &c), rule, "seed {seed}: {c:?}");
            matched.insert(rule);
        }
    }
    assert!(matched.len() > 50, "hardly any rule matched: {matched:?}");
}

#[test]
fn the_tables_are_in_order() {
    for (seed, Checked { policy, .. }, _) in policies().step_by(10) {
        let compiled = policy.compile();
        let last = policy.rules().len() - 1;
        assert_eq!((compiled.port_numbers.len(), compiled.vlans.len()), (65_536, 4096));
        assert!(compiled.sets.len() <= MAX_SETS && compiled.prefixes.len() <= MAX_PREFIXES);
        let different: HashSet<_> = compiled.sets.iter().collect();
        assert_eq!(different.len(), compiled.sets.len(), "seed {seed}");
        for (index, set) in compiled.sets.iter().enumerate() {
            let has_default = set[last / 64] & (1 << (last % 64)) != 0;
            let narrows = index != compiled.polices as usize;
            assert!(has_default || !narrows, "seed {seed}: not the default");
        }
        let keys: Vec<_> = compiled.prefixes.iter().map(|p| (p.addr, p.length)).collect();
        assert!(keys.is_sorted_by(|a, b| a < b), "seed {seed}");
    }
}

/// Not those on trial.
#[test]
fn the_rules_that_police() {
    let text = "[[rules]]\nname = \"web\"\npeer_port = 80\n\
                [[rules]]\nname = \"bulk\"\npeer_port = 20\npolice = true\n\
                [[rules]]\nname = \"trial\"\npeer_port = 21\nmode = \"shadow\"\npolice = true\n";
    let policy = Policy::parse(text, "policy.toml").expect("a policy").policy;
    let compiled = policy.compile();
    assert_eq!(compiled.sets[compiled.polices as usize][0], 0b0010);
}

#[test]
fn a_rule_reported_as_unreachable_is() {
    let mut reported = 0;
    for (seed, Checked { policy, warnings }, mut chance) in policies() {
        let unreached: HashSet<&str> = warnings
            .iter()
            .filter_map(|warning| warning.message.split_once(" is never reached"))
            .map(|(name, _)| name.trim_matches('`'))
            .collect();
        reported += unreached.len();
        for _ in 0..500 {
            let c = chance.connection();
            let name = policy.rules()[policy.judge(&c)].name();
            assert!(!unreached.contains(name), "seed {seed}: {name} matches {c:?}");
        }
    }
    assert!(reported > 100, "hardly any was said to be: {reported}");
}

#[test]
fn every_rule_before_the_match_has_a_reason() {
    for (seed, Checked { policy, .. }, mut chance) in policies() {
        for _ in 0..20 {
            let c = chance.connection();
            let explanation = policy.explain(&c);
            assert_eq!(explanation.rule, policy.judge(&c));
            assert_eq!(explanation.misses.len(), explanation.rule);
            for miss in &explanation.misses {
                assert!(!miss.reasons.is_empty(), "seed {seed}: {} and {c:?}", miss.name);
            }
        }
    }
}
