//! The API server is away, or refuses.

use serde_json::json;
use vcc_testing::guest;

use super::*;
use crate::daemon::watching::get;

fn base() -> String {
    let rules = json!([{ "name": "r", "underlay": "dctcp" }]);
    policy("base", json!({ "ports": [{ "device": "port", "tenant": "acme" }], "rules": rules }))
}

#[test]
fn a_node_goes_on_without_the_api_server() {
    on_a_node(|cluster| {
        let _pod_side = guest();
        let mut agent = Agent::start(&cluster.kubeconfig());
        cluster.apply(&base());
        agent.has_ports(&[("port", "acme")]);
        cluster.stop_api_server();
        agent.kill();
        agent.run();
        agent.comes_to("it goes on", || agent.vcc("policy show").stdout.contains("base/r"));
        agent.has_ports(&[("port", "acme")]);
        let said = agent.vcc("policy apply").complaint(1);
        assert!(said.contains("this host's policy is that of its cluster"), "{said}");

        cluster.start_api_server();
        let wider = json!({
            "ports": [{ "device": "port", "tenant": "umbrella" }],
            "rules": [{ "name": "r", "underlay": "cubic" }],
        });
        cluster.apply(&policy("base", wider));
        agent.has_ports(&[("port", "umbrella")]);
        agent.comes_to("told", || field(cluster, "vccpolicy/base", ".status.everywhere") == "1/1");
    });
}

#[test]
fn a_reload_changes_nothing_and_is_no_problem_of_the_node() {
    on_a_node(|cluster| {
        let _pod_side = guest();
        let agent = Agent::start(&cluster.kubeconfig());
        cluster.apply(&base());
        agent.has_ports(&[("port", "acme")]);
        let said = agent.vcc("policy apply").complaint(1);
        assert!(said.contains("this host's policy is that of its cluster"), "{said}");
        let pid = agent.child.as_ref().expect("a process").id();
        let sent = Command::new("kill").args(["-HUP", &pid.to_string()]).status().expect("kill");
        assert!(sent.success());
        let log = || std::fs::read_to_string(agent.directory.path().join("log")).expect("a log");
        agent.comes_to("both are answered", || {
            log().matches("the policy in force stays: this host's policy").count() == 2
        });
        assert_eq!(agent.status()["problems"], json!([]));
        let told = log();
        let (_, address) = told.split_once("web page at http://").expect("an address");
        let address = address.split('/').next().expect("an address");
        // Answers may be a second old.
        std::thread::sleep(Duration::from_secs(2));
        let (status, health) = get(address, "/healthz");
        assert!(status.contains(" 200 "), "{status}: {health}");
    });
}

#[test]
fn an_agent_without_a_memory_leaves_ports_as_they_are_until_it_hears() {
    on_a_node(|cluster| {
        let _pod_side = guest();
        let mut agent = Agent::start(&cluster.kubeconfig());
        cluster.apply(&base());
        agent.has_ports(&[("port", "acme")]);
        let epoch = agent.status()["epoch"].clone();
        cluster.stop_api_server();
        agent.kill();
        std::fs::remove_dir_all(agent.directory.path().join("state")).expect("removed");
        agent.run();
        agent.comes_to("it answers", || agent.status()["ports"][0]["device"] == "port");
        std::thread::sleep(Duration::from_secs(2));
        let status = agent.status();
        assert_eq!((&status["ports"][0]["draining"], &status["epoch"]), (&false.into(), &epoch));
        cluster.start_api_server();
        agent.has_ports(&[("port", "acme")]);
    });
}

#[test]
fn a_token_that_is_revoked_is_told_on_the_node() {
    on_a_node(|cluster| {
        let _pod_side = guest();
        cluster.kubectl(&["create", "serviceaccount", "vcc", "--namespace", "vcc"]);
        cluster.kubectl(&[
            "create",
            "clusterrolebinding",
            "vcc",
            "--clusterrole=cluster-admin",
            "--serviceaccount=vcc:vcc",
        ]);
        cluster.apply(
            &pod("vcc", "vcc-1", json!({}))
                .replace("\"containers\"", "\"serviceAccountName\":\"vcc\",\"containers\""),
        );
        let token = cluster.pod_token("vcc", "vcc", "vcc-1");
        let mut agent = Agent::start(&cluster.kubeconfig_with_token("agent", &token));
        cluster.apply(&base());
        agent.has_ports(&[("port", "acme")]);

        cluster.kubectl(&[
            "delete",
            "pod",
            "vcc-1",
            "--namespace",
            "vcc",
            "--force",
            "--grace-period=0",
        ]);
        agent.kill();
        agent.run();
        agent.complains("the token is not accepted");
        agent.has_ports(&[("port", "acme")]);
        assert!(agent.vcc("policy show").well().contains("base/r"), "the last good one holds");
    });
}

#[test]
fn a_version_that_is_newer_is_told_and_the_last_one_stays() {
    on_a_node(|cluster| {
        let _pod_side = guest();
        let mut agent = Agent::start(&cluster.kubeconfig());
        cluster.apply(&base());
        agent.has_ports(&[("port", "acme")]);
        // As after a release that knows only its own version.
        for resource in ["vccpolicies", "vccnodes"] {
            let ours =
                r#"[{ "op": "replace", "path": "/spec/versions/0/served", "value": false }]"#;
            let definition = format!("crd/{resource}.vcc.internal");
            cluster.kubectl(&["patch", &definition, "--type=json", "-p", ours]);
        }
        agent.kill();
        agent.run();
        agent.complains("does not serve this version");
        agent.has_ports(&[("port", "acme")]);
    });
}
