//! Objects by the thousand and by the megabyte.

use serde_json::json;
use vcc_testing::guest;

use super::*;

/// `kubectl` reads one list faster than many objects.
fn list(items: Vec<String>) -> String {
    let items: Vec<Value> =
        items.iter().map(|item| serde_json::from_str(item).expect("JSON")).collect();
    json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string()
}

/// Almost a megabyte, which is the most that etcd takes with what the server adds to it.
fn of_a_megabyte(priority: usize) -> Value {
    const RULES: usize = 450;
    let peers = |rule: usize| {
        let peer = move |peer: usize| format!("10.{}.{}.{peer}/32", rule / 256, rule % 256);
        (0..100).map(peer).collect::<Vec<String>>()
    };
    let rule = |rule: usize| json!({ "name": format!("r{rule}"), "underlay": "cubic", "peer": peers(rule) });
    json!({ "priority": priority, "rules": (0..RULES).map(rule).collect::<Vec<Value>>() })
}

#[test]
fn too_many_and_too_large_objects_leave_a_node_as_it_is_and_small() {
    /// Of the agent with a few hundred objects of each kind.
    const MOST_KB: u64 = 60_000;
    /// What its manifests request: with policies of megabytes up to its budget.
    const MOST_IN_A_FLOOD_KB: u64 = 128 << 10;
    on_a_node(|cluster| {
        let _pod_side = guest();
        let mut agent = Agent::start(&cluster.kubeconfig());
        let selectors =
            json!([{ "device": "port", "tenant": "acme" }, { "pods": {}, "tenant": "all" }]);
        let rules = json!([{ "name": "r", "underlay": "dctcp" }]);
        cluster
            .apply(&policy("base", json!({ "priority": 0, "ports": selectors, "rules": rules })));
        agent.has_ports(&[("port", "acme")]);
        let epoch = agent.status()["epoch"].clone();

        let namespaces = (0..200).map(|it| namespace(&format!("n{it}"), json!({ "team": "a" })));
        cluster.apply(&list(namespaces.collect()));
        let pods = (0..200).map(|it| pod(&format!("n{it}"), "p", json!({ "app": "web" })));
        cluster.apply(&list(pods.collect()));
        cluster.apply(&policy("after", json!({ "priority": 1 })));
        agent.comes_to("a policy that comes after them", || {
            field(cluster, "vccpolicies/after", "/status/everywhere") == "1/1"
        });
        let memory_kb = agent.memory_kb();
        assert!(memory_kb < MOST_KB, "{memory_kb} kB");
        // They come before the first one in a list.
        for number in 0..5 {
            let object = policy(&format!("a-large-{number}"), of_a_megabyte(100 + number));
            cluster.kubectl_with(&["create", "-f", "-"], &object);
        }
        let small = |it: usize| {
            let selector = json!({ "matchLabels": { "team": "a" } });
            let rules = json!([{ "name": "r", "tenant": ["all"], "underlay": "reno" }]);
            let ports = json!([{ "namespaces": selector, "pods": {}, "tenant": format!("t{it}") }]);
            policy(
                &format!("a-small-{it}"),
                json!({ "priority": 200 + it, "ports": ports, "rules": rules }),
            )
        };
        cluster.apply(&list((0..300).map(small).collect()));

        agent.comes_to("a refusal", || {
            field(cluster, "vccpolicies/a-large-0", "/status/message").contains("too many networks")
        });
        let refused_beyond_the_budget = || {
            let policies = object_of_vcc(cluster, "vccpolicies")["items"].take();
            let message = |policy: &Value| text(policy.pointer("/status/message"));
            let messages = policies.as_array().into_iter().flatten().map(message);
            messages
                .filter(|it| it.contains("a node reads at most 4 MiB and 256 policies in total"))
                .count()
        };
        // Which of them depends on whether the node watched them come or listed them again, and the
        // node's own count costs less than megabytes of policies from the API server.
        const BEYOND_THE_BUDGET: usize = 307 - 256;
        agent.comes_to("a complaint of the node", || {
            let problems = field(cluster, &format!("vccnodes/{NODE}"), "/status/problems");
            problems.contains(&format!("{BEYOND_THE_BUDGET} policies ("))
        });
        agent.comes_to("as many refusals as are beyond the budget", || {
            refused_beyond_the_budget() == BEYOND_THE_BUDGET
        });
        assert_eq!(field(cluster, "vccpolicies/base", "/status/everywhere"), "1/1");
        agent.has_ports(&[("port", "acme")]);
        assert_eq!(agent.status()["epoch"], epoch, "nothing has begun anew");

        let in_a_flood_kb = agent.memory_kb();
        println!(
            "figure: an agent takes {memory_kb} kB of memory at most, {in_a_flood_kb} kB in a flood"
        );
        assert!(in_a_flood_kb < MOST_IN_A_FLOOD_KB, "{in_a_flood_kb} kB");

        // It lists all of them again.
        agent.kill();
        agent.run();
        agent.has_ports(&[("port", "acme")]);
        agent.comes_to("one node", || {
            field(cluster, "vccpolicies/base", "/status/everywhere") == "1/1"
        });
        assert!(agent.vcc("policy show").well().contains("base/r"));
        // Once there is room, what is left comes into force.
        cluster.kubectl(&["delete", "vccpolicies", "-l", "!none", "--wait=false"]);
        cluster.apply(&small(0));
        agent.comes_to("one node", || {
            field(cluster, "vccpolicies/a-small-0", "/status/everywhere") == "1/1"
        });
    });
}

impl Agent {
    /// The most that was resident.
    fn memory_kb(&self) -> u64 {
        vcc_testing::process_status(self.child.as_ref().expect("it runs").id(), "VmHWM")
    }
}
