//! An edition: what one node has in force of all policies.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::Arc;

use serde_json::Value;

use crate::check::{Reading, asked_tenants, tenants};
use crate::choose::{LastGood, Standing, has_changed};
use crate::document::Document;
use crate::fit::fit;
use crate::resource::{Pod, PolicyObject};
use crate::scene::{Needs, Scene};
use crate::selector::PodSelector;
use crate::spec::{Presence, Rule};
use crate::status::{ABSENT, AS_WRITTEN, IN_SHADOW, PolicyOnNode, REFUSED};

/// The policies of the API server, read; and those that were in force last.
#[derive(Default)]
pub struct Policies {
    newest: Vec<Arc<Reading>>,
    last_good: LastGood,
}

/// A policy file for the node, and what became of each policy.
#[derive(Clone, Debug)]
pub struct Edition {
    /// Else why there is none: the node has changed in such a way that its policies are too much for it
    /// now, and what it has in force stays.
    pub text: Result<String, String>,
    /// Equal where the same generations of the same policies are in force.
    pub id: String,
    pub policies: Vec<PolicyOnNode>,
    /// Those beyond what a node reads, of which no generation is in force: there may be thousands.
    pub not_read: Vec<String>,
    in_force: LastGood,
}

impl Policies {
    /// Reads the policies that there are. Those of them that have not changed are not read again, unless
    /// they ask for a tenant that was or is missing: what is said of it depends on the others.
    pub fn are(&mut self, objects: &BTreeMap<String, PolicyObject>) {
        let all: BTreeSet<String> =
            objects.values().flat_map(|object| tenants(&object.spec)).collect();
        let before: BTreeSet<String> =
            self.newest.iter().flat_map(|reading| tenants(&reading.object.spec)).collect();
        let is_the_same = |spec: &Value| {
            all == before || asked_tenants(spec).all(|it| all.contains(it) && before.contains(it))
        };
        let known: BTreeMap<&str, &Arc<Reading>> =
            self.newest.iter().map(|it| (it.object.name.as_str(), it)).collect();
        let read = |object: &PolicyObject| match known.get(object.name.as_str()) {
            Some(reading) if reading.object == *object && is_the_same(&object.spec) => {
                Arc::clone(reading)
            }
            _ => Arc::new(Reading::of(object, &all)),
        };
        self.newest = objects.values().map(read).collect();
        // What is deleted is not in force; nor is it remembered.
        let is_there = |name: &String| objects.contains_key(name);
        self.last_good.retain(|name, _| is_there(name));
    }

    /// The policies that an earlier process had in force.
    pub fn remember(&mut self, objects: Vec<PolicyObject>) {
        let all: BTreeSet<String> = objects.iter().flat_map(|it| tenants(&it.spec)).collect();
        let readings = objects.iter().map(|object| Arc::new(Reading::of(object, &all)));
        self.last_good = readings.map(|reading| (reading.object.name.clone(), reading)).collect();
    }

    /// What has to be watched for this node, whichever generations are in force.
    pub fn needs(&self, node: &str) -> Needs {
        let fit = self.newest.iter().filter(|it| it.is_fit());
        needs_of(fit.chain(self.last_good.values()), node)
    }

    /// What an edition of this node depends on that is in force now.
    pub fn needs_in_force(&self, node: &str) -> Needs {
        needs_of(self.last_good.values(), node)
    }

    /// The edition that is in force by memory, as long as nothing is heard.
    pub fn remembered(&self, node: &str, text: &str) -> Edition {
        let standing = |reading: &Arc<Reading>| {
            let (newest, chosen) = (Arc::clone(reading), Some(Arc::clone(reading)));
            Standing { newest, chosen, refused: Vec::new() }
        };
        let standings: Vec<Standing> = self.last_good.values().map(standing).collect();
        self.edition(Ok(text.to_owned()), &standings, node)
    }

    /// The edition of a node. If the policies are more than a node can have, those that have changed
    /// stay as they were, or out.
    pub fn compile(&self, node: &str, scene: &Scene) -> Edition {
        let newest: Vec<Arc<Reading>> =
            self.newest.iter().map(|it| self.unless_unheard(it, scene)).collect();
        let (standings, document) = fit(&newest, &self.last_good, node, scene);
        self.edition(document.map(Document::into_text), &standings, node)
    }

    /// A policy that is not in force is not to be without the pods that it means.
    fn unless_unheard(&self, reading: &Arc<Reading>, scene: &Scene) -> Arc<Reading> {
        let unheard = |rule: &Rule| {
            rule.peers.as_ref().is_some_and(|peers| scene.unheard.contains(&peers.of_pods()))
        };
        if scene.has_heard_all() || !reading.is_fit() || !has_changed(&self.last_good, reading) {
            return Arc::clone(reading);
        }
        let error = match reading.spec.rules.iter().position(unheard) {
            Some(index) => {
                format!("spec.rules[{index}].peer_pods: the API server has not told of these pods")
            }
            None if scene.are_namespaces_unheard
                && Needs::of(iter::once(&**reading)).namespaces =>
            {
                "spec: the API server has not told of the namespaces that this selects".to_owned()
            }
            None => return Arc::clone(reading),
        };
        Arc::new(Reading { errors: vec![error], ..(**reading).clone() })
    }

    fn edition(&self, text: Result<String, String>, standings: &[Standing], node: &str) -> Edition {
        let chosen = || standings.iter().filter_map(|standing| standing.chosen.as_ref());
        let in_force: LastGood = match &text {
            Ok(_) => chosen().map(|it| (it.object.name.clone(), Arc::clone(it))).collect(),
            Err(_) => self.last_good.clone(),
        };
        let mut hasher = crc32fast::Hasher::new();
        for reading in in_force.values() {
            let PolicyObject { name, uid, generation, .. } = &reading.object;
            hasher.update(format!("{name} {uid} {generation}\n").as_bytes());
        }
        let (mut policies, mut not_read) = (Vec::new(), Vec::new());
        for standing in standings {
            let object = &standing.newest.object;
            match in_force.get(&object.name) {
                None if object.is_omitted => not_read.push(object.name.clone()),
                in_force => policies.push(on_node(standing, in_force, node)),
            }
        }
        Edition { text, id: format!("{:08x}", hasher.finalize()), policies, not_read, in_force }
    }

    /// The edition is in force. Returns whether other policies are than before.
    pub fn is_in_force(&mut self, edition: &Edition) -> bool {
        let objects = |it: &LastGood| it.values().map(|it| it.object.clone()).collect::<Vec<_>>();
        let has_changed = objects(&self.last_good) != objects(&edition.in_force);
        self.last_good.clone_from(&edition.in_force);
        has_changed
    }

    /// What an earlier or later process has to remember.
    pub fn in_force(&self) -> impl Iterator<Item = &PolicyObject> {
        self.last_good.values().map(|reading| &reading.object)
    }
}

fn needs_of<'a>(readings: impl Iterator<Item = &'a Arc<Reading>>, node: &str) -> Needs {
    let all = readings.map(Arc::as_ref);
    Needs::of(all.filter(|it| is_present(it, node)))
}

fn is_present(reading: &Reading, node: &str) -> bool {
    reading.spec.rollout.presence(node) != Presence::Absent
}

fn on_node(standing: &Standing, in_force: Option<&Arc<Reading>>, node: &str) -> PolicyOnNode {
    let mode = match in_force.map(|it| it.spec.rollout.presence(node)) {
        None => REFUSED,
        Some(Presence::Absent) => ABSENT,
        Some(Presence::Shadow) => IN_SHADOW,
        Some(Presence::AsWritten) => AS_WRITTEN,
    };
    let newest = &standing.newest;
    let warnings = in_force.map_or(&newest.warnings, |in_force| &in_force.warnings);
    PolicyOnNode {
        name: newest.object.name.clone(),
        generation: newest.object.generation,
        in_force: in_force.map_or(0, |in_force| in_force.object.generation),
        mode: mode.to_owned(),
        messages: standing.refused.iter().chain(warnings).cloned().collect(),
    }
}

impl Edition {
    /// The host refused it: what is in force is what was before.
    pub fn is_refused(&mut self, why: &str, before: Option<&Edition>) {
        let none = LastGood::new();
        let in_force = before.map_or(&none, |before| &before.in_force);
        let modes: BTreeMap<&str, &str> = before
            .iter()
            .flat_map(|before| &before.policies)
            .map(|it| (it.name.as_str(), it.mode.as_str()))
            .collect();
        for policy in &mut self.policies {
            let was = in_force.get(&policy.name).map_or(0, |it| it.object.generation);
            if was != policy.in_force {
                policy.messages.insert(0, format!("this node refused the edition: {why}"));
            }
            let mode = modes.get(policy.name.as_str()).filter(|_| was != 0);
            policy.mode = mode.copied().unwrap_or(REFUSED).to_owned();
            policy.in_force = was;
        }
        self.id = before.map_or_else(String::new, |before| before.id.clone());
        self.in_force.clone_from(in_force);
    }

    /// The node's pods that its policies select, and whose devices are not known.
    pub fn without_device<'a>(&self, node: &str, scene: &'a Scene) -> Vec<&'a Pod> {
        let present = self.in_force.values().filter(|it| is_present(it, node));
        let ports = present.flat_map(|it| &it.spec.ports);
        let selectors: Vec<&PodSelector> = ports.filter_map(|port| port.pods.as_ref()).collect();
        let is_selected = |pod: &&Pod| selectors.iter().any(|it| scene.selects(it, pod));
        scene.without_device().filter(is_selected).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NODE: &str = "worker-1";

    fn object(name: &str, generation: i64, spec: Value) -> PolicyObject {
        let (name, uid) = (name.to_owned(), format!("uid of {name}"));
        PolicyObject { name, uid, generation, created: 0, spec: spec.into(), is_omitted: false }
    }

    fn are(policies: &mut Policies, objects: &[PolicyObject]) {
        policies.are(&objects.iter().map(|it| (it.name.clone(), it.clone())).collect());
    }

    fn pod(name: &str, labels: &[(&str, &str)], address: &str) -> Pod {
        Pod {
            uid: name.into(),
            namespace: "shop".into(),
            name: name.into(),
            labels: labels.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
            addresses: vec![address.parse().expect("an address")],
            host_network: false,
            has_ended: false,
        }
    }

    fn scene() -> Scene {
        let own = [pod("web", &[("app", "web")], "10.0.0.1"), pod("job", &[], "10.0.0.2")];
        let devices = [("web", "veth1"), ("job", "veth[2]")];
        Scene {
            own: own.into_iter().map(|it| (it.uid.clone(), it)).collect(),
            devices: devices.map(|(a, b)| (a.to_owned(), b.to_owned())).into(),
            ..Scene::default()
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
        are(&mut policies, &[object("base", 1, base), object("first", 1, first)]);
        let edition = policies.compile(NODE, &scene());
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
        let scene = Scene { devices: BTreeMap::new(), ..scene() };
        let mut policies = Policies::default();
        let mut lacking = |spec: Value| {
            are(&mut policies, &[object("base", 1, spec)]);
            let edition = policies.compile(NODE, &scene);
            let lacking = edition.without_device(NODE, &scene).into_iter();
            lacking.map(|it| it.name.clone()).collect::<Vec<String>>()
        };
        assert_eq!(lacking(json!({ "ports": [{ "pods": web() }] })), ["web"]);
        assert_eq!(lacking(json!({ "ports": [{ "device": "veth*" }] })), [""; 0]);
        let absent = json!({ "ports": [{ "pods": {} }], "rollout": { "canary": "0%" } });
        assert_eq!(lacking(absent), [""; 0]);
        assert_eq!(lacking(json!({ "ports": [{ "pods": {} }] })), ["job", "web"]);
    }

    /// Too many networks for a node: each of the rule's peers is one.
    fn crowd() -> Scene {
        let peers = (0..20_000_u32).map(|number| {
            let address = std::net::Ipv4Addr::from(0x0a00_0000 + number * 2).to_string();
            let pod = pod(&format!("p{number}"), &[("app", "db")], &address);
            (pod.uid.clone(), pod)
        });
        Scene { peers: peers.collect(), ..scene() }
    }

    fn with_peers(underlay: &str) -> Value {
        let db = json!({ "matchLabels": { "app": "db" } });
        json!({
            "ports": [{ "pods": {} }],
            "rules": [{ "name": "db", "peer_pods": db, "underlay": underlay }],
        })
    }

    #[test]
    fn a_policy_that_is_too_much_for_a_node_stays_as_it_was() {
        let mut policies = Policies::default();
        let small =
            json!({ "ports": [{ "pods": {} }], "rules": [{ "name": "r", "underlay": "dctcp" }] });
        are(&mut policies, &[object("base", 1, small)]);
        let first = policies.compile(NODE, &crowd());
        policies.is_in_force(&first);
        are(&mut policies, &[object("base", 2, with_peers("dctcp"))]);
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
            are(&mut policies, &before);
            let first = policies.compile(NODE, &crowd());
            policies.is_in_force(&first);
            let at = |part: &str| text(&first).find(part).expect(part);
            assert!(at("\"middle/m\"") < at("\"follower/f\""), "{}", text(&first));
            assert!(at("\"follower/f\"") < at("\"base/r\""), "{}", text(&first));

            let follower =
                follows.map_or(follower.clone(), |follows| object("follower", 2, follows));
            are(&mut policies, &[object("base", 2, large), follower, middle]);
            let edition = policies.compile(NODE, &crowd());
            assert_eq!(text(&edition), text(&first));
            assert_eq!(edition.id, first.id);
            let policy = of(&edition, "base");
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
                are(&mut policies, &[base()]);
                let first = policies.compile(NODE, &crowd());
                policies.is_in_force(&first);
            }
            are(&mut policies, &[base(), object("large", 1, large(priority))]);
            let edition = policies.compile(NODE, &crowd());
            assert!(text(&edition).contains("base/r"), "{priority}");
            let (base, large) = (of(&edition, "base"), of(&edition, "large"));
            assert_eq!((base.in_force, large.in_force), (1, 0), "{priority}");
            assert!(large.messages[0].contains("too many networks"), "{priority}");
            assert!(base.messages.is_empty(), "{priority}");
        }
    }

    fn of<'a>(edition: &'a Edition, name: &str) -> &'a PolicyOnNode {
        edition.policies.iter().find(|it| it.name == name).expect(name)
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
        are(&mut policies, &[base.clone(), object("other", 1, other("dctcp"))]);
        let first = policies.compile(NODE, &crowd());
        policies.is_in_force(&first);
        let all = [
            base,
            object("large", 1, large),
            object("other", 2, other("cubic")),
            object("absent", 1, absent),
        ];
        are(&mut policies, &all);
        let edition = policies.compile(NODE, &crowd());
        assert!(text(&edition).contains("cubic"), "{}", text(&edition));
        let (large, other) = (of(&edition, "large"), of(&edition, "other"));
        assert_eq!((large.in_force, other.in_force), (0, 2));
        assert!(large.messages[0].contains("too many networks"), "{large:?}");
        assert!(other.messages.is_empty(), "{other:?}");
        assert_eq!(of(&edition, "absent").mode, ABSENT);
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
        are(&mut policies, std::slice::from_ref(&base));
        let first = policies.compile(NODE, &scene());
        policies.is_in_force(&first);
        are(&mut policies, &[base.clone(), object("next", 1, of_priority(50))]);
        let edition = policies.compile(NODE, &scene());
        assert_eq!(text(&edition), text(&first));
        let (base_here, next) = (of(&edition, "base"), of(&edition, "next"));
        assert_eq!((base_here.in_force, next.in_force), (1, 0));
        assert!(!base_here.messages.iter().any(|it| it.starts_with("spec")), "{base_here:?}");
        assert!(next.messages[0].contains("too many pools"), "{next:?}");

        // Ports of `vcc domain` have no pools: that is wrong with a rule of the other.
        let sockets = json!({ "priority": 50, "ports": [{ "socket": "/run/v/*" }] });
        are(&mut policies, &[base, object("next", 2, sockets)]);
        let edition = policies.compile(NODE, &scene());
        let (base_here, next) = (of(&edition, "base"), of(&edition, "next"));
        assert_eq!((base_here.in_force, next.in_force), (1, 0));
        assert!(!base_here.messages.iter().any(|it| it.starts_with("spec")), "{base_here:?}");
        let why = "spec: on this node, beside the VccPolicy `base` (spec.rules[0]";
        assert!(next.messages[0].starts_with(why), "{next:?}");
    }

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
        are(
            &mut policies,
            &[object("base", 1, spec(9, "base", json!({}))), object("next", 1, next)],
        );
        let edition = policies.compile(NODE, &scene());
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
        let rule =
            |tenant: Value, mode: &str| json!([{ "name": "b", "tenant": tenant, "mode": mode }]);
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
            let said = format!("{base} {tenant}");
            are(&mut policies, &[object("base", 1, base), object("next", 1, next(tenant))]);
            let edition = policies.compile(NODE, &scene());
            let text = text(&edition);
            assert_eq!(text.matches("[[ports]]").count(), ports, "{said}");
            assert_eq!(text.contains("\"next/r\""), has_rule, "{said}");
            assert!(edition.policies.iter().all(|it| it.in_force == 1), "{said}");
        }
    }

    #[test]
    fn a_cluster_that_grows_too_much_leaves_the_node_as_it_is() {
        let mut policies = Policies::default();
        are(&mut policies, &[object("base", 1, with_peers("dctcp"))]);
        let first = policies.compile(NODE, &scene());
        policies.is_in_force(&first);
        let edition = policies.compile(NODE, &crowd());
        let why = edition.text.as_ref().expect_err("what is in force stays");
        assert!(why.contains("too many networks"), "{why}");
        assert_eq!(edition.policies[0].in_force, 1);
        assert!(edition.policies[0].messages[0].contains("too many networks"));
        assert_eq!(edition.id, first.id);
    }

    #[test]
    fn only_a_policy_that_is_in_force_waits_for_its_peers() {
        let mut policies = Policies::default();
        let base = object("base", 1, json!({ "priority": 1, "ports": [{ "pods": {} }] }));
        are(&mut policies, &[base.clone(), object("next", 1, with_peers("dctcp"))]);
        let unheard = Scene { unheard: policies.needs(NODE).peers, ..scene() };
        assert_eq!(unheard.unheard.len(), 1);
        let edition = policies.compile(NODE, &unheard);
        let of =
            |edition: &Edition| edition.policies.iter().map(|it| it.in_force).collect::<Vec<_>>();
        assert_eq!(of(&edition), [1, 0]);
        let why = "spec.rules[0].peer_pods: the API server has not told of these pods";
        assert_eq!(edition.policies[1].messages, [why]);
        assert!(policies.needs_in_force(NODE).peers.is_empty());
        let edition = policies.compile(NODE, &scene());
        assert_eq!(of(&edition), [1, 1]);
        policies.is_in_force(&edition);
        assert_eq!(policies.needs_in_force(NODE).peers, unheard.unheard);
        assert_eq!(of(&policies.compile(NODE, &unheard)), [1, 1]);
        // An agent that begins anew says what it goes on with.
        let remembered = policies.remembered(NODE, "text");
        assert_eq!((of(&remembered), remembered.id), (vec![1, 1], edition.id));
    }

    #[test]
    fn what_is_in_force_has_its_mode_when_the_host_refuses_what_comes_next() {
        let spec = |rollout: Value| json!({ "ports": [{ "pods": {} }], "rollout": rollout });
        let mut policies = Policies::default();
        are(&mut policies, &[object("base", 1, spec(json!({})))]);
        let mut before = policies.compile(NODE, &scene());
        policies.is_in_force(&before);
        let shadow = spec(json!({ "canary": "0%", "shadow": true }));
        are(&mut policies, &[object("base", 2, shadow)]);
        for _ in 0..2 {
            let mut edition = policies.compile(NODE, &scene());
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
        are(&mut policies, &[object("base", 1, json!({ "ports": [{ "pods": {} }] }))]);
        let mut first = policies.compile(NODE, &scene());
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
        are(&mut policies, &[object("base", 1, spec)]);
        let mut scene = scene();
        scene.namespaces.insert("shop".into(), Default::default());
        scene.peers = scene.own.clone();
        let edition = policies.compile(NODE, &scene);
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
        are(&mut policies, &all);
        let warning = |policies: &Policies| policies.newest[2].warnings.len();
        assert_eq!(warning(&policies), 1, "nobody has the tenant y");
        let before = policies.newest.clone();
        all.push(object("d", 1, ports("y")));
        are(&mut policies, &all);
        let is_kept = |at: usize| Arc::ptr_eq(&before[at], &policies.newest[at]);
        assert_eq!((is_kept(0), is_kept(1), is_kept(2)), (true, true, false));
        assert_eq!(warning(&policies), 0);
        all.remove(0);
        are(&mut policies, &all);
        assert_eq!(policies.newest[0].warnings.len(), 1, "nobody has the tenant x any more");
    }

    #[test]
    fn a_thousand_policies_that_are_all_broken_take_no_time() {
        let mut policies = Policies::default();
        let broken = |number: i64| {
            object(
                &format!("p{number}"),
                1,
                json!({ "priority": number, "rules": [{ "name": 1 }] }),
            )
        };
        let objects: Vec<PolicyObject> = (0..1000).map(broken).collect();
        are(&mut policies, &objects);
        let edition = policies.compile(NODE, &scene());
        assert_eq!(edition.policies.iter().filter(|it| it.mode == REFUSED).count(), 1000);
        assert_eq!(text(&edition).matches("[[").count(), 0);
    }
}
