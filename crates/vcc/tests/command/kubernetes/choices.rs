//! Pods choose their mode and underlay by annotations.

use std::net::{TcpListener, TcpStream};

use serde_json::json;
use vcc_testing::guest;

use super::*;

#[test]
fn a_pod_has_what_it_chose_as_far_as_the_policy_admits_it() {
    on_a_node(|cluster| {
        let pod_side = guest();
        let agent = Agent::start(&cluster.kubeconfig());
        cluster.apply(&namespace("shop", json!({})));
        cluster.apply(&pod("shop", "web", json!({})));
        has_address(cluster, "shop", "web", "192.0.2.1");
        let may_choose = json!({ "underlays": ["dctcp", "cubic"], "modes": ["enforce", "shadow"] });
        let spec = json!({
            "ports": [{ "pods": {}, "tenant": "acme", "pods_may_choose": may_choose }],
            "rules": [{ "name": "all", "tenant": ["acme"], "mode": "shadow", "underlay": "reno-ecn" }],
        });
        cluster.apply(&policy("base", spec));
        agent.has_ports(&[("port", "acme")]);
        let annotate = |annotations: &[&str]| {
            let command = ["annotate", "pod", "web", "--namespace", "shop", "--overwrite"];
            cluster.kubectl(&[&command[..], annotations].concat());
        };
        let node = format!("vccnodes/{NODE}");
        let rule = || {
            let explained = agent.vcc("explain 192.0.2.1:40000 192.0.2.2:443 --device port").stdout;
            explained.lines().find(|line| line.contains(" matches")).unwrap_or_default().to_owned()
        };
        assert!(rule().contains("`base/all`"), "{}", rule());

        let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
        let address = listener.local_addr().expect("an address");
        let connect = || {
            pod_side.inside(|| TcpStream::connect(address).expect("a connection")).expect("inside")
        };
        let live =
            || -> Value { serde_json::from_str(&agent.vcc("flows --json").well()).expect("JSON") };

        annotate(&["vcc.internal/underlay=dctcp", "vcc.internal/mode=enforce"]);
        agent.comes_to("a choice", || rule().contains("`base/all (dctcp enforce)`"));
        let _client = connect();
        agent.comes_to("its rule", || live()[0]["rule"] == "base/all (dctcp enforce)");
        let flow = live()[0].clone();
        assert_eq!(
            (&flow["underlay"], &flow["tenant"]),
            (&json!("dctcp"), &json!("acme")),
            "{flow}"
        );
        agent.comes_to("a count", || field(cluster, &node, "/status/podsWithChoice") == "1");

        // A live connection comes under the policy again, and its owner learns why.
        annotate(&["vcc.internal/underlay=reno"]);
        agent.comes_to("the policy's own rule", || live()[0]["rule"] == "base/all");
        let why = "vcc.internal/underlay: the cluster's policy does not let this pod choose `reno`, only \
                   dctcp, cubic";
        agent.comes_to("a refusal", || {
            field(cluster, &node, "/status/refusedChoices")
                .contains(&format!("pod shop/web: {why}"))
        });
        assert_eq!(field(cluster, &node, "/status/podsWithRefusedChoice"), "1");
        let events = || {
            let events = cluster.object("/api/v1/namespaces/shop/events").expect("a list");
            events["items"].as_array().cloned().unwrap_or_default()
        };
        agent.comes_to("an Event", || !events().is_empty());
        let event = events()[0].clone();
        assert_eq!(event["reason"], "VccChoiceRefused", "{event}");
        assert_eq!(event["involvedObject"]["name"], "web", "{event}");
        assert!(event["message"].as_str().is_some_and(|it| it.starts_with(why)), "{event}");
        let log = std::fs::read_to_string(agent.directory.path().join("log")).expect("a log");
        assert_eq!(log.matches(why).count(), 1, "{log}");
        assert_eq!(agent.status()["problems"], json!([]), "it is no problem of the node");

        annotate(&["vcc.internal/underlay-", "vcc.internal/mode-"]);
        agent.comes_to("no choice", || {
            field(cluster, &node, "/status/podsWithRefusedChoice") == "0"
        });
        assert_eq!(events().len(), 1, "one Event of one refusal");
    });
}

#[test]
fn the_api_server_refuses_what_no_pod_can_choose() {
    on_a_node(|cluster| {
        let refused = |port: Value| {
            let policy = policy("base", json!({ "ports": [port] }));
            let arguments = ["apply", "-f", "-"];
            cluster.try_kubectl(&cluster.kubeconfig(), &arguments, &policy).expect_err("refused")
        };
        let why = refused(json!({ "pods": {}, "pods_may_choose": { "underlays": ["dctpc"] } }));
        assert!(why.contains("Unsupported value: \"dctpc\""), "{why}");
        let why = refused(json!({ "device": "veth*", "pods_may_choose": { "modes": ["shadow"] } }));
        assert!(
            why.contains("`pods_may_choose` is for ports with `namespaces` or `pods`"),
            "{why}"
        );
    });
}
