//! Policies that are more together than a node can have.

use super::*;

/// Too many networks for a node: each of the rule's peers is one.
fn crowd() -> ClusterState {
    let peers = (0..20_000_u32).map(|number| {
        let address = std::net::Ipv4Addr::from(0x0a00_0000 + number * 2).to_string();
        let pod = pod(&format!("p{number}"), &[("app", "db")], &address);
        (pod.uid.clone(), pod)
    });
    ClusterState { peers: peers.collect(), ..cluster() }
}

#[test]
fn a_policy_that_is_too_much_for_a_node_stays_as_it_was() {
    let mut policies = Policies::default();
    let small =
        json!({ "ports": [{ "pods": {} }], "rules": [{ "name": "r", "underlay": "dctcp" }] });
    set_objects(&mut policies, &[object("base", 1, small)]);
    let first = policies.compile(NODE, &crowd());
    policies.is_in_force(&first);
    set_objects(&mut policies, &[object("base", 2, with_peers("dctcp"))]);
    let edition = policies.compile(NODE, &crowd());
    assert_eq!(
        text(&edition).replace("generation 1", ""),
        text(&first).replace("generation 1", "")
    );
    let policy = &edition.policies[0];
    assert_eq!(
        (policy.generation, policy.in_force, edition.id.as_str()),
        (2, 1, first.id.as_str())
    );
    let why = "spec: on this node: too many networks in all rules: ";
    assert!(policy.messages[0].starts_with(why), "{:?}", policy.messages);
}

#[test]
fn a_policy_that_is_too_much_at_its_new_place_stays_at_its_old_one() {
    let rules = |name: &str| json!([{ "name": name, "underlay": "dctcp" }]);
    let middle = json!({ "priority": 95, "rules": rules("m") });
    let base = json!({ "priority": 100, "ports": [{ "pods": {} }], "rules": rules("r") });
    let elsewhere = |key: &str, value: Value| {
        let mut spec = with_peers("dctcp");
        spec["priority"] = 100.into();
        spec[key] = value;
        spec
    };
    // Another wants the place that the policy leaves.
    let mut follows = json!({ "priority": 96, "rules": rules("f") });
    let follower = object("follower", 1, follows.clone());
    follows["priority"] = 100.into();
    for (large, follows) in [
        (elsewhere("priority", 90.into()), None),
        (elsewhere("priority", 110.into()), Some(follows)),
        (elsewhere("default", json!({ "mode": "shadow" })), None),
    ] {
        let mut policies = Policies::default();
        let middle = object("middle", 1, middle.clone());
        let before = [object("base", 1, base.clone()), follower.clone(), middle.clone()];
        set_objects(&mut policies, &before);
        let first = policies.compile(NODE, &crowd());
        policies.is_in_force(&first);
        let at = |part: &str| text(&first).find(part).expect(part);
        assert!(at("\"middle/m\"") < at("\"follower/f\""), "{}", text(&first));
        assert!(at("\"follower/f\"") < at("\"base/r\""), "{}", text(&first));

        let follower = follows.map_or(follower.clone(), |follows| object("follower", 2, follows));
        set_objects(&mut policies, &[object("base", 2, large), follower, middle]);
        let edition = policies.compile(NODE, &crowd());
        assert_eq!(text(&edition), text(&first));
        assert_eq!(edition.id, first.id);
        let policy = policy_named(&edition, "base");
        assert_eq!((policy.generation, policy.in_force), (2, 1));
        assert_eq!(policy.messages.len(), 1);
        assert!(policy.messages[0].contains("too many networks"), "{:?}", policy.messages);
    }
}

#[test]
fn a_new_policy_that_is_too_much_is_the_one_to_do_without() {
    let large = |priority: i64| {
        let mut spec = with_peers("dctcp");
        spec["priority"] = priority.into();
        spec
    };
    let base = || {
        let rules = json!([{ "name": "r", "peer": ["10.9.9.9"], "underlay": "dctcp" }]);
        object("base", 1, json!({ "priority": 5, "ports": [{ "pods": {} }], "rules": rules }))
    };
    for (priority, is_known) in [(900, true), (1, true), (900, false)] {
        let mut policies = Policies::default();
        if is_known {
            set_objects(&mut policies, &[base()]);
            let first = policies.compile(NODE, &crowd());
            policies.is_in_force(&first);
        }
        set_objects(&mut policies, &[base(), object("large", 1, large(priority))]);
        let edition = policies.compile(NODE, &crowd());
        assert!(text(&edition).contains("base/r"), "{priority}");
        let (base, large) = (policy_named(&edition, "base"), policy_named(&edition, "large"));
        assert_eq!((base.in_force, large.in_force), (1, 0), "{priority}");
        assert!(large.messages[0].contains("too many networks"), "{priority}");
        assert!(base.messages.is_empty(), "{priority}");
    }
}

/// The other one comes last in the order, and one that has nothing for this node behind it.
#[test]
fn one_that_is_too_much_keeps_no_other_from_changing() {
    let mut large = with_peers("dctcp");
    large["priority"] = 10.into();
    let base = object("base", 1, json!({ "priority": 100, "ports": [{ "pods": {} }] }));
    let other = |underlay: &str| {
        let rules = json!([{ "name": "o", "peer": ["10.9.9.9"], "underlay": underlay }]);
        json!({ "priority": 900, "rules": rules })
    };
    let mut absent = with_peers("dctcp");
    absent["priority"] = 950.into();
    absent["rollout"] = json!({ "canary": "0%" });
    let mut policies = Policies::default();
    set_objects(&mut policies, &[base.clone(), object("other", 1, other("dctcp"))]);
    let first = policies.compile(NODE, &crowd());
    policies.is_in_force(&first);
    let all = [
        base,
        object("large", 1, large),
        object("other", 2, other("cubic")),
        object("absent", 1, absent),
    ];
    set_objects(&mut policies, &all);
    let edition = policies.compile(NODE, &crowd());
    assert!(text(&edition).contains("cubic"), "{}", text(&edition));
    let (large, other) = (policy_named(&edition, "large"), policy_named(&edition, "other"));
    assert_eq!((large.in_force, other.in_force), (0, 2));
    assert!(large.messages[0].contains("too many networks"), "{large:?}");
    assert!(other.messages.is_empty(), "{other:?}");
    assert_eq!(policy_named(&edition, "absent").mode, ABSENT);
}

/// A copy of a policy for some nodes, where there is room for one of both. The pools of the one that
/// has not changed come last.
#[test]
fn what_has_not_changed_is_not_to_blame_for_what_comes_beside_it() {
    let pool = |number: usize| json!({ "name": format!("p{number}"), "window": "1M" });
    let rule = |number: usize| json!({ "name": format!("r{number}"), "pool": format!("p{number}"), "guest_ecn": "override" });
    let of_priority = |priority: i64| {
        json!({
            "priority": priority,
            "ports": [{ "pods": {} }],
            "pools": (0..129).map(pool).collect::<Vec<Value>>(),
            "rules": (0..129).map(rule).collect::<Vec<Value>>(),
        })
    };
    let base = object("base", 1, of_priority(100));
    let mut policies = Policies::default();
    set_objects(&mut policies, std::slice::from_ref(&base));
    let first = policies.compile(NODE, &cluster());
    policies.is_in_force(&first);
    set_objects(&mut policies, &[base.clone(), object("next", 1, of_priority(50))]);
    let edition = policies.compile(NODE, &cluster());
    assert_eq!(text(&edition), text(&first));
    let (base_here, next) = (policy_named(&edition, "base"), policy_named(&edition, "next"));
    assert_eq!((base_here.in_force, next.in_force), (1, 0));
    assert!(!base_here.messages.iter().any(|it| it.starts_with("spec")), "{base_here:?}");
    assert!(next.messages[0].contains("too many pools"), "{next:?}");

    // A port in front of a device has no `receive`: that is wrong with a rule of the other.
    let ringed = json!({
        "priority": 100,
        "ports": [{ "socket": "/run/v/*" }],
        "rules": [{ "name": "ring", "receive": "ring" }],
    });
    let base = object("base", 2, ringed);
    set_objects(&mut policies, std::slice::from_ref(&base));
    let first = policies.compile(NODE, &cluster());
    policies.is_in_force(&first);
    let detours = json!({ "priority": 50, "ports": [{ "device": "veth*", "buffer": "1M" }] });
    set_objects(&mut policies, &[base, object("next", 2, detours)]);
    let edition = policies.compile(NODE, &cluster());
    let (base_here, next) = (policy_named(&edition, "base"), policy_named(&edition, "next"));
    assert_eq!((base_here.in_force, next.in_force), (2, 0));
    assert!(!base_here.messages.iter().any(|it| it.starts_with("spec")), "{base_here:?}");
    let why = "spec: on this node, together with the VccPolicy `base` (spec.rules[0]";
    assert!(next.messages[0].starts_with(why), "{next:?}");
}

#[test]
fn a_cluster_that_grows_too_much_leaves_the_node_as_it_is() {
    let mut policies = Policies::default();
    set_objects(&mut policies, &[object("base", 1, with_peers("dctcp"))]);
    let first = policies.compile(NODE, &cluster());
    policies.is_in_force(&first);
    let edition = policies.compile(NODE, &crowd());
    let why = edition.text.as_ref().expect_err("what is in force stays");
    assert!(why.contains("too many networks"), "{why}");
    assert_eq!(edition.policies[0].in_force, 1);
    assert!(edition.policies[0].messages[0].contains("too many networks"));
    assert_eq!(edition.id, first.id);
}
