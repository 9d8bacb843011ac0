//! What pods choose by their annotations.

use super::*;
use crate::choice::Choice;

/// The pod `web` chooses, and `job` does not.
fn cluster_with(underlay: Option<&str>, mode: Option<&str>) -> ClusterState {
    let mut cluster = cluster();
    let web = cluster.own.get_mut("web").expect("a pod");
    web.choice = Choice { underlay: underlay.map(str::to_owned), mode: mode.map(str::to_owned) };
    cluster
}

fn compile(spec: Value, cluster: &ClusterState) -> Edition {
    let mut policies = Policies::default();
    set_objects(&mut policies, &[object("base", 1, spec)]);
    let edition = policies.compile(NODE, cluster);
    assert!(edition.policies.iter().all(|it| it.in_force == 1), "{:?}", edition.policies);
    edition
}

fn why(edition: &Edition) -> Vec<&str> {
    edition.refused_choices.iter().map(|it| it.why.as_str()).collect()
}

fn spec(may_choose: Value) -> Value {
    json!({
        "ports": [{ "pods": {}, "tenant": "acme", "pods_may_choose": may_choose }],
        "pools": [{ "name": "gold", "window": "2M" }],
        "rules": [
            { "name": "exempt", "peer": ["192.0.2.9"], "mode": "ignore" },
            { "name": "gold", "tenant": ["acme"], "peer_port": [443], "pool": "gold", "underlay": "cubic" },
        ],
        "default": { "mode": "shadow", "underlay": "reno-ecn" },
    })
}

#[test]
fn a_pod_s_choice_is_a_class_of_its_own() {
    let spec = spec(json!({ "underlays": ["dctcp", "cubic"], "modes": ["enforce"] }));
    let edition = compile(spec, &cluster_with(Some("dctcp"), Some("enforce")));
    let expected = "\
# Of the cluster's policies (kubectl get vccpolicies), what this node needs.
# base, generation 1
# shop/job
[[ports]]
tenant = \"acme\"
device = \"veth[[]2[]]\"
# shop/web
[[ports]]
tenant = \"acme\"
device = \"veth1\"
class = \"chosen: dctcp enforce\"
[[pools]]
name = \"base/gold\"
window = \"2M\"
[[rules]]
mode = \"ignore\"
name = \"base/exempt\"
peer = [
\"192.0.2.9\",
]
[[rules]]
class = [
\"chosen: dctcp enforce\",
]
mode = \"enforce\"
name = \"base/gold (dctcp enforce)\"
peer_port = [
443,
]
pool = \"base/gold\"
tenant = [
\"acme\",
]
underlay = \"dctcp\"
[[rules]]
name = \"base/gold\"
peer_port = [
443,
]
pool = \"base/gold\"
tenant = [
\"acme\",
]
underlay = \"cubic\"
[[rules]]
class = [
\"chosen: dctcp enforce\",
]
mode = \"enforce\"
name = \"base/default (dctcp enforce)\"
underlay = \"dctcp\"
[default]
mode = \"shadow\"
underlay = \"reno-ecn\"
";
    let shown = text(&edition)
        .replace("# shop/job\n[[ports]]\ndevice = \"veth[[]2[]]\"\ntenant = \"acme\"\n", "");
    assert_eq!(shown, expected);
    assert_eq!((edition.followed_choices, why(&edition)), (1, vec![]));
}

#[test]
fn what_is_not_admitted_leaves_the_pod_under_the_policy() {
    let nothing = compile(spec(Value::Null), &cluster_with(Some("dctcp"), None));
    assert_eq!(
        why(&nothing),
        ["vcc.internal/underlay: the cluster's policy lets this pod choose no underlay"]
    );
    let plain = compile(spec(Value::Null), &cluster());
    assert_eq!(text(&nothing), text(&plain));
    let dctcp = || spec(json!({ "underlays": ["dctcp"] }));
    for (underlay, mode) in
        [(Some("cubic"), None), (Some("dctcp"), Some("shadow")), (Some("x"), None)]
    {
        let edition = compile(dctcp(), &cluster_with(underlay, mode));
        assert_eq!((edition.followed_choices, why(&edition).len()), (0, 1));
        assert_eq!(text(&edition), text(&plain));
    }
}

#[test]
fn a_choice_that_a_rule_cannot_have_is_refused_as_a_whole() {
    let spec = json!({
        "ports": [{ "pods": {}, "pods_may_choose": { "underlays": ["cubic", "dctcp-priority"] } }],
        "rules": [
            { "name": "plain", "peer_port": [80] },
            { "name": "quick", "underlay": "dctcp-priority", "priority": 0.5 },
        ],
        "pools": [{ "name": "unused", "window": "2M" }],
    });
    let edition = compile(spec.clone(), &cluster_with(Some("cubic"), None));
    let [why] = why(&edition)[..] else { panic!("{:?}", edition.refused_choices) };
    assert!(
        why.starts_with("`cubic` does not fit the rule `base/quick`: `priority` needs"),
        "{why}"
    );
    assert!(!text(&edition).contains("class"), "{}", text(&edition));
    let edition = compile(spec, &cluster_with(Some("dctcp-priority"), None));
    assert_eq!(edition.followed_choices, 1);
    assert!(text(&edition).contains("base/plain (dctcp-priority)"), "{}", text(&edition));
    assert!(!text(&edition).contains("base/quick (dctcp-priority)"), "it has it already");
}

#[test]
fn a_choice_has_no_rules_that_others_need() {
    let rules: Vec<Value> = (0..700)
        .map(|number| json!({ "name": format!("r{number}"), "peer_port": [number + 1] }))
        .collect();
    let spec = json!({
        "ports": [{ "pods": {}, "pods_may_choose": { "underlays": ["dctcp"] } }], "rules": rules,
    });
    let edition = compile(spec, &cluster_with(Some("dctcp"), None));
    assert_eq!(why(&edition), ["this node has no room for the rules that it takes"]);
    assert_eq!(text(&edition).matches("[[rules]]").count(), 700);
}

/// A rollout in shadow mode changes nothing: neither by what its own ports admit, nor for pods that chose
/// to be enforced.
#[test]
fn a_choice_and_a_rollout_in_shadow_mode() {
    let next = |may_choose: Value| {
        json!({
            "priority": 1,
            "rollout": { "canary": "0%", "shadow": true },
            "ports": [{ "pods": {}, "pods_may_choose": may_choose }],
            "rules": [{ "name": "r", "underlay": "dctcp" }],
        })
    };
    let edition =
        compile(next(json!({ "modes": ["enforce"] })), &cluster_with(None, Some("enforce")));
    assert_eq!(edition.followed_choices, 0);
    assert!(!text(&edition).contains("enforce"), "{}", text(&edition));

    let base = json!({
        "priority": 9,
        "ports": [{ "pods": {}, "pods_may_choose": { "modes": ["enforce"] } }],
        "default": { "mode": "shadow" },
    });
    let mut policies = Policies::default();
    set_objects(&mut policies, &[object("base", 1, base), object("next", 1, next(Value::Null))]);
    let edition = policies.compile(NODE, &cluster_with(None, Some("enforce")));
    let at = |part: &str| text(&edition).find(part).expect(part);
    assert!(at("\"base/default (enforce)\"") < at("\"next/r\""), "{}", text(&edition));
}

#[test]
fn errors_of_pods_may_choose_name_their_fields() {
    let spec = json!({
        "ports": [
            { "device": "veth*", "pods_may_choose": {} },
            { "pods": {}, "class": "a", "pods_may_choose": { "underlays": ["dctpc", 1], "mode": [] } },
        ],
    });
    let mut policies = Policies::default();
    set_objects(&mut policies, &[object("base", 1, spec)]);
    let edition = policies.compile(NODE, &cluster());
    let expected = [
        "spec.ports[0].pods_may_choose: `pods_may_choose` is for ports with `namespaces` or `pods`: others \
         have no annotations",
        "spec.ports[1].pods_may_choose.mode: unknown key `mode`; known: underlays, modes",
        "spec.ports[1].pods_may_choose.underlays[0]: `dctpc` is not an underlay; the nearest is `dctcp`",
        "spec.ports[1].pods_may_choose.underlays[1]: must be a name in quotes, not 1",
        "spec.ports[1].pods_may_choose: `pods_may_choose` and `class` exclude each other: what a pod has \
         chosen is the class of its port",
    ];
    assert_eq!(edition.policies[0].messages, expected);
}
