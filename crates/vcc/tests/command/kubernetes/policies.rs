//! Policies come into force, and `kubectl` shows it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::json;
use vcc_testing::guest;

use super::*;

#[test]
fn pods_are_ports_under_the_cluster_s_policies() {
    on_a_node(|cluster| {
        let pod_side = guest();
        let agent = Agent::start(&cluster.kubeconfig());
        cluster.apply(&namespace("shop", json!({ "customer": "acme" })));
        cluster.apply(&pod("shop", "web", json!({ "app": "web" })));
        let acme = json!({ "matchLabels": { "customer": "acme" } });
        let spec = json!({
            "priority": 10,
            "ports": [{ "namespaces": acme, "pods": { "matchLabels": { "app": "web" } }, "tenant": "acme" }],
            "rules": [
                { "name": "elsewhere", "tenant": ["nobody"], "mode": "ignore" },
                { "name": "web", "tenant": ["acme"], "underlay": "dctcp" },
            ],
        });
        cluster.apply(&policy("base", spec));
        agent.comes_to("one node", || {
            field(cluster, "vccpolicies/base", "/status/everywhere") == "1/1"
        });
        assert_eq!(agent.ports(), [], "nobody knows its address");

        has_address(cluster, "shop", "web", "192.0.2.1");
        agent.has_ports(&[("port", "acme")]);
        let shown = agent.vcc("policy show").well();
        assert!(shown.contains("base/web") && !shown.contains("elsewhere"), "{shown}");

        let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
        let address = listener.local_addr().expect("an address");
        let mut client =
            pod_side.inside(|| TcpStream::connect(address).expect("a connection")).expect("inside");
        let (mut server, _) = listener.accept().expect("a connection");
        client.write_all(b"x").expect("sent");
        server.read_exact(&mut [0]).expect("received");
        let flows: Value = serde_json::from_str(&agent.vcc("flows --json").well()).expect("JSON");
        assert_eq!(flows[0]["rule"], "base/web", "{flows}");
        assert_eq!(flows[0]["underlay"], "dctcp", "{flows}");

        let table = cluster.kubectl(&["get", "vccpolicies,vccnodes"]);
        assert!(table.contains("vccpolicy.vcc.internal/base") && table.contains("1/1"), "{table}");
        assert!(table.contains(&format!("vccnode.vcc.internal/{NODE}")), "{table}");
        agent.comes_to("a flow", || {
            field(cluster, &format!("vccnodes/{NODE}"), "/status/ports") == "1"
        });
        let owner = field(cluster, &format!("vccnodes/{NODE}"), "/metadata/ownerReferences/0/name");
        assert_eq!(owner, NODE, "it goes with its node");

        // Live connections are judged anew.
        cluster.kubectl(&["label", "namespace", "shop", "customer=umbrella", "--overwrite"]);
        agent.comes_to("another tenant", || agent.status()["ports"][0]["draining"] == true);
        cluster.kubectl(&["label", "namespace", "shop", "customer=acme", "--overwrite"]);
        agent.has_ports(&[("port", "acme")]);
        agent.comes_to("no longer draining", || agent.status()["ports"][0]["draining"] == false);
    });
}

#[test]
fn of_a_broken_policy_the_last_good_generation_stays() {
    on_a_node(|cluster| {
        let _pod_side = guest();
        let mut agent = Agent::start(&cluster.kubeconfig());
        let device = json!([{ "device": "port", "tenant": "acme" }]);
        let good = json!({ "ports": device, "rules": [{ "name": "r", "underlay": "dctcp" }] });
        cluster.apply(&policy("base", good));
        agent.has_ports(&[("port", "acme")]);
        let epoch = agent.status()["epoch"].clone();

        // Errors that the schema cannot find.
        let rules = json!([{ "name": "r", "underlay": "cubic" }, { "name": "r", "pool": "gold" }]);
        let broken = json!({ "ports": device, "rules": rules });
        cluster.apply(&policy("base", broken));
        let node = format!("vccnodes/{NODE}");
        agent.comes_to("a refusal", || {
            field(cluster, &node, "/status/policies/0/generation") == "2"
        });
        assert_eq!(field(cluster, &node, "/status/policies/0/inForce"), "1");
        let messages = field(cluster, &node, "/status/policies/0/messages");
        let twice = "spec.rules[1].name: the rule in spec.rules[0].name also has the name `r`";
        assert!(messages.contains(twice), "{messages}");
        assert!(messages.contains("spec.rules[1].pool: "), "{messages}");
        agent.comes_to("it is reported", || {
            field(cluster, "vccpolicies/base", "/status/refused") == "1"
        });
        assert!(field(cluster, "vccpolicies/base", "/status/message").contains(twice));
        assert_eq!(agent.status()["epoch"], epoch, "nothing has changed");

        // It stays for an agent that starts anew, too.
        agent.kill();
        agent.run();
        agent.has_ports(&[("port", "acme")]);
        let shown = agent.vcc("policy show").well();
        assert!(shown.contains("dctcp") && !shown.contains("cubic"), "{shown}");

        // Two of one priority: the one in force keeps it.
        let other = json!({ "rules": [{ "name": "s", "mode": "ignore" }] });
        cluster.apply(&policy("other", other));
        let why = "the VccPolicy `base` also has the priority 500";
        agent
            .comes_to(why, || field(cluster, "vccpolicies/other", "/status/message").contains(why));

        cluster.kubectl(&["delete", "vccpolicy", "--all"]);
        agent.comes_to("no port", || agent.ports().is_empty());
    });
}

#[test]
fn a_pod_that_is_a_peer_is_known_by_its_labels() {
    on_a_node(|cluster| {
        let _pod_side = guest();
        let agent = Agent::start(&cluster.kubeconfig());
        cluster.apply(&namespace("shop", json!({ "customer": "acme" })));
        cluster.apply(&pod("shop", "db", json!({ "app": "db" })));
        has_address(cluster, "shop", "db", "198.51.100.7");
        let db = json!({ "matchLabels": { "app": "db" } });
        let spec = json!({
            "ports": [{ "device": "port" }],
            "rules": [{ "name": "db", "peer_pods": db, "peer": ["203.0.113.0/24"], "underlay": "dctcp" }],
        });
        cluster.apply(&policy("base", spec));
        let explain = |peer: &str| {
            agent.vcc(&format!("explain 192.0.2.1:40000 {peer}:5432 --device port")).stdout
        };
        agent.comes_to("the peer", || explain("198.51.100.7").contains("base/db"));
        assert!(explain("203.0.113.9").contains("base/db"));
        assert!(!explain("198.51.100.8").contains("dctcp"), "{}", explain("198.51.100.8"));

        cluster.kubectl(&[
            "delete",
            "pod",
            "db",
            "--namespace",
            "shop",
            "--force",
            "--grace-period=0",
        ]);
        agent.comes_to("no such peer", || !explain("198.51.100.7").contains("dctcp"));
    });
}
