//! What `vcc policy check` refuses, `kubectl apply` refuses too, or the status does.

use std::fs;

use serde_json::json;

use super::*;

/// A policy file, and the same as a spec.
fn cases() -> Vec<(&'static str, Value)> {
    vec![
        (
            "[[rules]]\nname = \"r\"\nunderlay = \"dctpc\"",
            json!({ "rules": [{ "name": "r", "underlay": "dctpc" }] }),
        ),
        (
            "[[rules]]\nname = \"r\"\nweight = 1001\npool = \"p\"\n[[pools]]\nname = \"p\"\nwindow = \"1M\"",
            json!({ "rules": [{ "name": "r", "weight": 1001, "pool": "p" }], "pools": [{ "name": "p", "window": "1M" }] }),
        ),
        ("[[rules]]\nunderlay = \"dctcp\"", json!({ "rules": [{ "underlay": "dctcp" }] })),
        (
            "[[rules]]\nname = \"r\"\npeer = \"10.0.0.1/8\"",
            json!({ "rules": [{ "name": "r", "peer": ["10.0.0.1/8"] }] }),
        ),
        (
            "[[rules]]\nname = \"r\"\nrto_min = \"2h\"",
            json!({ "rules": [{ "name": "r", "rto_min": "2h" }] }),
        ),
        (
            "[[rules]]\nname = \"r\"\nguest_port = 70000",
            json!({ "rules": [{ "name": "r", "guest_port": [70000] }] }),
        ),
        (
            "[[rules]]\nname = \"r\"\nvlan = 4095",
            json!({ "rules": [{ "name": "r", "vlan": [4095] }] }),
        ),
        (
            "[[ports]]\ndevice = \"a\"\nsocket = \"/b\"",
            json!({ "ports": [{ "device": "a", "socket": "/b" }] }),
        ),
        (
            "[[ports]]\ndevice = \"a\"\nmax_flows = 0",
            json!({ "ports": [{ "device": "a", "max_flows": 0 }] }),
        ),
        (
            "[[rules]]\nname = \"r\"\nunderlays = \"dctcp\"",
            json!({ "rules": [{ "name": "r", "underlays": "dctcp" }] }),
        ),
        ("[[rules]]\nname = \"default\"", json!({ "rules": [{ "name": "default" }] })),
        ("[default]\npriority = 2", json!({ "default": { "priority": 2 } })),
        (
            "[default]\nunderlay = \"reno\"\npriority = 0.5",
            json!({ "default": { "underlay": "reno", "priority": 0.5 } }),
        ),
    ]
}

/// The sentence behind the place and the severity.
fn sentences(output: &CommandOutput) -> Vec<String> {
    let of = |line: &str| Some(line.split_once(": error: ")?.1.to_owned());
    output.stderr.lines().filter_map(of).collect()
}

#[test]
fn what_the_checker_refuses_no_node_puts_in_force() {
    on_a_node(|cluster| {
        let agent = Agent::start(&cluster.kubeconfig());
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("policy.toml");
        let mut by_the_server = 0;
        for (number, (toml, mut spec)) in cases().into_iter().enumerate() {
            fs::write(&file, toml).expect("a file");
            let output = agent.vcc(&format!("policy check {}", file.display()));
            let sentences = sentences(&output);
            assert!(!sentences.is_empty(), "{toml}: {}", output.stderr);
            spec["priority"] = number.into();
            let name = format!("p{number}");
            let object = policy(&name, spec);
            let applied =
                cluster.try_kubectl(&cluster.kubeconfig(), &["apply", "-f", "-"], &object);
            if let Err(why) = applied {
                by_the_server += 1;
                assert!(why.contains("spec."), "{toml}: {why}");
                continue;
            }
            let status = format!("vccpolicies/{name}");
            agent.comes_to(toml, || field(cluster, &status, "/status/refused") == "1");
            let message = field(cluster, &status, "/status/message");
            assert!(
                sentences.iter().any(|sentence| message.contains(sentence)),
                "{toml}: {sentences:?}: {message}"
            );
        }
        assert!(by_the_server >= 7, "{by_the_server}");
    });
}

#[test]
fn where_the_schema_can_carry_it_the_server_says_the_checker_s_sentence() {
    on_a_node(|cluster| {
        let refused = |spec: Value| {
            let object = policy("p", spec);
            let output = cluster.try_kubectl(&cluster.kubeconfig(), &["apply", "-f", "-"], &object);
            output.expect_err("refused")
        };
        for (spec, sentence) in [
            (
                json!({ "rules": [{ "name": "r", "weight": 1001 }] }),
                "1001: must be a number from 1 to 1000",
            ),
            (json!({ "priority": -1 }), "-1: must be 0 to 1000"),
            (
                json!({ "ports": [{ "device": "a", "pods": {} }] }),
                "a port has a `device`, or `namespaces` and `pods`, not both",
            ),
            (
                json!({ "ports": [{ "device": "a", "socket": "/b" }] }),
                "a port has a `device` or a `socket`, not both",
            ),
            (
                json!({ "rollout": { "canary": "200%" } }),
                "`200%` is not a share of the nodes, from \"0%\" to \"100%\"",
            ),
            (
                json!({ "rules": [{ "name": "r", "underlays": "x" }] }),
                "unknown field \"spec.rules[0].underlays\"",
            ),
        ] {
            let output = refused(spec);
            assert!(output.contains(sentence), "{sentence}: {output}");
        }
    });
}

#[test]
fn a_status_that_nobody_can_read_hinders_nobody() {
    on_a_node(|cluster| {
        let mut agent = Agent::start(&cluster.kubeconfig());
        let rules = |underlay: &str| json!({ "rules": [{ "name": "r", "underlay": underlay }] });
        cluster.apply(&policy("base", rules("dctcp")));
        let everywhere = || field(cluster, "vccpolicies/base", "/status/everywhere");
        agent.comes_to("one node", || everywhere() == "1/1");
        agent.kill();
        let nonsense = r#"{ "status": { "nodes": "x", "policies": 5, "canary": [] } }"#;
        for object in ["vccpolicies/base", &format!("vccnodes/{NODE}")] {
            let patch = ["patch", object, "--subresource=status", "--type=merge", "-p", nonsense];
            cluster.kubectl(&patch);
        }
        // Another node's, whose agent has gone.
        cluster.apply(
            "{ apiVersion: vcc.internal/v1alpha1, kind: VccNode, metadata: { name: gone } }",
        );
        let patch =
            ["patch", "vccnode/gone", "--subresource=status", "--type=merge", "-p", nonsense];
        cluster.kubectl(&patch);
        agent.run();
        cluster.apply(&policy("base", rules("cubic")));
        agent.comes_to("the new generation", || {
            let node = format!("vccnodes/{NODE}");
            field(cluster, &node, "/status/policies/0/inForce") == "2"
        });
        agent.comes_to("the summary", || everywhere() == "1/2");
    });
}
