//! A rollout's shadow, beside what is in force.

use super::*;

#[test]
fn a_rollout_s_shadow_takes_nothing_from_what_is_in_force() {
    let spec = |priority: i64, tenant: &str, rollout: Value| {
        json!({
            "priority": priority, "rollout": rollout,
            "ports": [{ "pods": {}, "tenant": tenant }],
            "rules": [{ "name": "r", "underlay": "dctcp" }],
        })
    };
    let next = spec(1, "next", json!({ "canary": "0%", "shadow": true }));
    let mut policies = Policies::default();
    set_objects(
        &mut policies,
        &[object("base", 1, spec(9, "base", json!({}))), object("next", 1, next)],
    );
    let edition = policies.compile(NODE, &cluster());
    let at = |part: &str| text(&edition).find(part).expect(part);
    assert!(at("\"base/r\"") < at("\"next/r\""), "{}", text(&edition));
    assert!(!text(&edition).contains("tenant = \"next\""), "{}", text(&edition));
}

/// A default, a rule without tenants or one for the tenant would change the connections of pods that
/// only the rollout selects; what changes none, or is for others, would not.
#[test]
fn a_rollout_s_shadow_gives_nothing_to_what_is_in_force() {
    let next = |tenant: Value| {
        json!({
            "rollout": { "canary": "0%", "shadow": true },
            "ports": [{ "pods": {}, "tenant": tenant }],
            "rules": [{ "name": "r", "underlay": "dctcp" }],
        })
    };
    let rule = |tenant: Value, mode: &str| json!([{ "name": "b", "tenant": tenant, "mode": mode }]);
    let web = || json!([{ "pods": web(), "tenant": "acme" }]);
    let other = json!(["other"]);
    let of = |key: &str, value: Value| json!({ "priority": 9, "ports": web(), key: value });
    for (base, tenant, ports, has_rule) in [
        (of("default", json!({ "mode": "enforce" })), json!("next"), 1, false),
        (of("default", json!({ "mode": "shadow" })), json!("next"), 2, true),
        (of("default", json!({ "mode": "ignore" })), json!("next"), 2, true),
        (of("rules", rule(Value::Null, "enforce")), json!("next"), 1, true),
        (of("rules", rule(json!(["acme"]), "enforce")), json!("acme"), 1, true),
        (of("rules", rule(json!(["acme"]), "enforce")), json!("next"), 2, true),
        (of("rules", rule(json!(["acme"]), "enforce")), Value::Null, 2, true),
        (of("rules", rule(other, "ignore")), json!("other"), 2, true),
    ] {
        let mut policies = Policies::default();
        let reason = format!("{base} {tenant}");
        set_objects(&mut policies, &[object("base", 1, base), object("next", 1, next(tenant))]);
        let edition = policies.compile(NODE, &cluster());
        let text = text(&edition);
        assert_eq!(text.matches("[[ports]]").count(), ports, "{reason}");
        assert_eq!(text.contains("\"next/r\""), has_rule, "{reason}");
        assert!(edition.policies.iter().all(|it| it.in_force == 1), "{reason}");
    }
}
