mod choices;
mod shadow;
mod too_much;

use serde_json::json;

use super::*;

const NODE: &str = "worker-1";

fn object(name: &str, generation: i64, spec: Value) -> PolicyObject {
    let (name, uid) = (name.to_owned(), format!("uid of {name}"));
    PolicyObject { name, uid, generation, created: 0, spec: spec.into(), is_omitted: false }
}

fn set_objects(policies: &mut Policies, objects: &[PolicyObject]) {
    policies.set_objects(&objects.iter().map(|it| (it.name.clone(), it.clone())).collect());
}

fn pod(name: &str, labels: &[(&str, &str)], address: &str) -> Pod {
    Pod {
        uid: name.into(),
        namespace: "shop".into(),
        name: name.into(),
        labels: labels.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
        choice: Default::default(),
        addresses: vec![address.parse().expect("an address")],
        host_network: false,
        has_ended: false,
    }
}

fn cluster() -> ClusterState {
    let own = [pod("web", &[("app", "web")], "10.0.0.1"), pod("job", &[], "10.0.0.2")];
    let devices = [("web", "veth1"), ("job", "veth[2]")];
    ClusterState {
        own: own.into_iter().map(|it| (it.uid.clone(), it)).collect(),
        devices: devices.map(|(a, b)| (a.to_owned(), b.to_owned())).into(),
        ..ClusterState::default()
    }
}

fn text(edition: &Edition) -> &str {
    edition.text.as_ref().expect("a text")
}

fn web() -> Value {
    json!({ "matchLabels": { "app": "web" } })
}

#[test]
fn a_node_gets_what_its_pods_need() {
    let mut policies = Policies::default();
    let base = json!({
        "priority": 20,
        "ports": [{ "pods": web(), "tenant": "acme" }, { "pods": {}, "max_flows": 100 }],
        "pools": [{ "name": "gold", "window": "2M" }, { "name": "unused", "window": "1M" }],
        "rules": [
            { "name": "other", "tenant": ["umbrella"], "pool": "unused" },
            { "name": "web", "tenant": ["umbrella", "acme"], "pool": "gold", "underlay": "dctcp" },
            { "name": "peers", "peer_pods": { "matchLabels": { "app": "db" } } },
        ],
    });
    let first = json!({
        "priority": 10,
        "rules": [{ "name": "web", "mode": "ignore" }],
        "rollout": { "canary": "0%", "shadow": true },
        "default": { "mode": "enforce" },
    });
    set_objects(&mut policies, &[object("base", 1, base), object("first", 1, first)]);
    let edition = policies.compile(NODE, &cluster());
    let expected = "\
# Of the cluster's policies (kubectl get vccpolicies), what this node needs.
# first, generation 1, in shadow mode by its rollout
# base, generation 1
# shop/web
[[ports]]
tenant = \"acme\"
device = \"veth1\"
# shop/job
[[ports]]
max_flows = 100
device = \"veth[[]2[]]\"
[[pools]]
name = \"base/gold\"
window = \"2M\"
[[rules]]
name = \"base/web\"
pool = \"base/gold\"
tenant = [
\"acme\",
]
underlay = \"dctcp\"
[[rules]]
mode = \"ignore\"
name = \"first/web\"
[default]
mode = \"shadow\"
";
    assert_eq!(text(&edition), expected);
    let modes: Vec<(&str, &str)> =
        edition.policies.iter().map(|it| (it.name.as_str(), it.mode.as_str())).collect();
    assert_eq!(modes, [("first", IN_SHADOW), ("base", AS_WRITTEN)]);
    assert!(policies.needs(NODE).peers.contains("app=db"));
    assert!(!policies.needs(NODE).namespaces);
}

#[test]
fn only_pods_that_a_policy_selects_here_lack_a_device() {
    let cluster = ClusterState { devices: BTreeMap::new(), ..cluster() };
    let mut policies = Policies::default();
    let mut lacking = |spec: Value| {
        set_objects(&mut policies, &[object("base", 1, spec)]);
        let edition = policies.compile(NODE, &cluster);
        let lacking = edition.without_device(NODE, &cluster).into_iter();
        lacking.map(|it| it.name.clone()).collect::<Vec<String>>()
    };
    assert_eq!(lacking(json!({ "ports": [{ "pods": web() }] })), ["web"]);
    assert_eq!(lacking(json!({ "ports": [{ "device": "veth*" }] })), [""; 0]);
    let absent = json!({ "ports": [{ "pods": {} }], "rollout": { "canary": "0%" } });
    assert_eq!(lacking(absent), [""; 0]);
    assert_eq!(lacking(json!({ "ports": [{ "pods": {} }] })), ["job", "web"]);
}

fn with_peers(underlay: &str) -> Value {
    let db = json!({ "matchLabels": { "app": "db" } });
    json!({
        "ports": [{ "pods": {} }],
        "rules": [{ "name": "db", "peer_pods": db, "underlay": underlay }],
    })
}

fn policy_named<'a>(edition: &'a Edition, name: &str) -> &'a PolicyOnNode {
    edition.policies.iter().find(|it| it.name == name).expect(name)
}

#[test]
fn only_a_policy_that_is_in_force_waits_for_its_peers() {
    let mut policies = Policies::default();
    let base = object("base", 1, json!({ "priority": 1, "ports": [{ "pods": {} }] }));
    set_objects(&mut policies, &[base.clone(), object("next", 1, with_peers("dctcp"))]);
    let missing_peers = ClusterState { missing_peers: policies.needs(NODE).peers, ..cluster() };
    assert_eq!(missing_peers.missing_peers.len(), 1);
    let edition = policies.compile(NODE, &missing_peers);
    let in_force =
        |edition: &Edition| edition.policies.iter().map(|it| it.in_force).collect::<Vec<_>>();
    assert_eq!(in_force(&edition), [1, 0]);
    let why = "spec.rules[0].peer_pods: the API server has not listed these pods yet";
    assert_eq!(edition.policies[1].messages, [why]);
    assert!(policies.needs_in_force(NODE).peers.is_empty());
    let edition = policies.compile(NODE, &cluster());
    assert_eq!(in_force(&edition), [1, 1]);
    policies.is_in_force(&edition);
    assert_eq!(policies.needs_in_force(NODE).peers, missing_peers.missing_peers);
    assert_eq!(in_force(&policies.compile(NODE, &missing_peers)), [1, 1]);
    // A restarted agent reports the edition that it keeps.
    let remembered = policies.remembered(NODE, "text");
    assert_eq!((in_force(&remembered), remembered.id), (vec![1, 1], edition.id));
}

#[test]
fn what_is_in_force_has_its_mode_when_the_host_refuses_what_comes_next() {
    let spec = |rollout: Value| json!({ "ports": [{ "pods": {} }], "rollout": rollout });
    let mut policies = Policies::default();
    set_objects(&mut policies, &[object("base", 1, spec(json!({})))]);
    let mut before = policies.compile(NODE, &cluster());
    policies.is_in_force(&before);
    let shadow = spec(json!({ "canary": "0%", "shadow": true }));
    set_objects(&mut policies, &[object("base", 2, shadow)]);
    for _ in 0..2 {
        let mut edition = policies.compile(NODE, &cluster());
        assert_eq!(edition.policies[0].mode, IN_SHADOW);
        edition.is_refused("no room", Some(&before));
        let policy = &edition.policies[0];
        assert_eq!((policy.in_force, policy.mode.as_str()), (1, AS_WRITTEN));
        before = edition;
    }
}

#[test]
fn what_the_host_refuses_is_not_in_force() {
    let mut policies = Policies::default();
    set_objects(&mut policies, &[object("base", 1, json!({ "ports": [{ "pods": {} }] }))]);
    let mut first = policies.compile(NODE, &cluster());
    first.is_refused("no room", None);
    let policy = &first.policies[0];
    assert_eq!((policy.in_force, policy.mode.as_str(), first.id.as_str()), (0, REFUSED, ""));
    assert_eq!(policy.messages, ["this node refused the edition: no room"]);
}

#[test]
fn selectors_that_match_everything_or_nothing_are_no_harm() {
    let mut policies = Policies::default();
    let contradiction = json!({ "matchExpressions": [
        { "key": "app", "operator": "Exists" }, { "key": "app", "operator": "DoesNotExist" },
    ] });
    let spec = json!({
        "ports": [{ "pods": contradiction, "tenant": "nobody" }, { "pods": {}, "namespaces": {} }],
        "rules": [{ "name": "r", "tenant": ["nobody"] }, { "name": "s", "peer_pods": {} }],
    });
    set_objects(&mut policies, &[object("base", 1, spec)]);
    let mut cluster = cluster();
    cluster.namespaces.insert("shop".into(), Default::default());
    cluster.peers = cluster.own.clone();
    let edition = policies.compile(NODE, &cluster);
    assert_eq!(text(&edition).matches("[[ports]]").count(), 2);
    assert!(!text(&edition).contains("base/r") && text(&edition).contains("10.0.0.1"));
}

#[test]
fn a_new_tenant_has_those_read_again_that_ask_for_a_missing_one() {
    let ports = |tenant: &str| json!({ "ports": [{ "device": tenant, "tenant": tenant }] });
    let rules =
        |tenant: &str| json!({ "priority": 1, "rules": [{ "name": "r", "tenant": [tenant] }] });
    let mut all = vec![object("a", 1, ports("x")), object("b", 1, rules("x"))];
    all.push(object("c", 1, rules("y")));
    let mut policies = Policies::default();
    set_objects(&mut policies, &all);
    let warning = |policies: &Policies| policies.newest[2].warnings.len();
    assert_eq!(warning(&policies), 1, "nobody has the tenant y");
    let before = policies.newest.clone();
    all.push(object("d", 1, ports("y")));
    set_objects(&mut policies, &all);
    let is_kept = |at: usize| Arc::ptr_eq(&before[at], &policies.newest[at]);
    assert_eq!((is_kept(0), is_kept(1), is_kept(2)), (true, true, false));
    assert_eq!(warning(&policies), 0);
    all.remove(0);
    set_objects(&mut policies, &all);
    assert_eq!(policies.newest[0].warnings.len(), 1, "nobody has the tenant x any more");
}

#[test]
fn a_thousand_policies_that_are_all_broken_take_no_time() {
    let mut policies = Policies::default();
    let broken = |number: i64| {
        object(&format!("p{number}"), 1, json!({ "priority": number, "rules": [{ "name": 1 }] }))
    };
    let objects: Vec<PolicyObject> = (0..1000).map(broken).collect();
    set_objects(&mut policies, &objects);
    let edition = policies.compile(NODE, &cluster());
    assert_eq!(edition.policies.iter().filter(|it| it.mode == REFUSED).count(), 1000);
    assert_eq!(text(&edition).matches("[[").count(), 0);
}

/// An agent that lists all of them again may find no room for one that is in force.
#[test]
fn what_is_in_force_is_read_from_memory_where_it_is_beyond_the_limit() {
    let ports =
        json!({ "priority": 1, "ports": [{ "device": "veth*", "tenant": "x" }], "rules": [] });
    let large = object("large", 1, ports);
    let rules = json!({ "priority": 2, "rules": [{ "name": "r", "tenant": ["x"] }] });
    let mut policies = Policies::default();
    policies.remember(vec![large.clone()]);
    let omitted = PolicyObject { spec: Value::Null.into(), is_omitted: true, ..large };
    let asking = object("other", 1, rules);
    set_objects(&mut policies, &[omitted.clone(), asking.clone()]);
    let edition = policies.compile(NODE, &cluster());
    assert!(text(&edition).contains("tenant = \"x\""), "{}", text(&edition));
    assert!(edition.not_read.is_empty());
    for policy in &edition.policies {
        assert_eq!((policy.in_force, policy.messages.as_slice()), (1, &[][..]), "{policy:?}");
    }
    policies.is_in_force(&edition);

    // Another generation is not known; the one before it stays in force.
    let next = PolicyObject { generation: 2, ..omitted.clone() };
    set_objects(&mut policies, &[next, asking.clone()]);
    let edition = policies.compile(NODE, &cluster());
    let large = policy_named(&edition, "large");
    assert_eq!((large.generation, large.in_force), (2, 1));
    assert_eq!(large.messages, [crate::budget::Budget::refusal()]);
    assert!(edition.not_read.is_empty());

    let another = PolicyObject { uid: "another".to_owned(), ..omitted };
    set_objects(&mut policies, &[another, asking]);
    assert_eq!(policies.compile(NODE, &cluster()).not_read, ["large"]);
}
