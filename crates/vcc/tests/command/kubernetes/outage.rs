//! The API server is away, or refuses.

use std::net::TcpStream;

use serde_json::json;
use vcc_port::{Host, Netns, Port, counters};
use vcc_testing::guest;

use super::*;
use crate::daemon::watching::get;
use crate::wire::{connect, exchange};

fn base() -> String {
    let rules = json!([{ "name": "r", "underlay": "dctcp" }]);
    policy("base", json!({ "ports": [{ "device": "port", "tenant": "acme" }], "rules": rules }))
}

/// An agent whose port is under the policy.
fn under_base(cluster: &Cluster) -> Agent {
    let agent = Agent::start(&cluster.kubeconfig());
    cluster.apply(&base());
    agent.has_ports(&[("port", "acme")]);
    agent
}

impl Agent {
    /// Until it has written this line.
    #[track_caller]
    fn logs(&self, line: &str) {
        let log = || std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        self.comes_to(line, || log().contains(line));
    }

    /// Until it says that it waits for the cluster's policies before it takes ports over.
    #[track_caller]
    fn waits_for_a_policy(&self) {
        self.comes_to("it reports it", || {
            self.vcc("status").stderr.contains("as soon as the cluster's policies arrive")
        });
    }

    /// Until it has a policy of the cluster in force.
    #[track_caller]
    fn keeps_running(&self) {
        self.comes_to("it continues", || self.vcc("policy show").stdout.contains("base/r"));
        self.has_ports(&[("port", "acme")]);
    }

    /// What it remembers over its end.
    fn forget(&self) {
        std::fs::remove_dir_all(self.directory.path().join("state")).expect("removed");
    }
}

#[test]
fn a_node_keeps_running_without_the_api_server() {
    on_a_node(|cluster| {
        let _pod_side = guest();
        let mut agent = under_base(cluster);
        cluster.stop_api_server();
        agent.kill();
        agent.run();
        agent.keeps_running();
        let output = agent.vcc("policy apply").complaint(1);
        assert!(output.contains("this host takes its policy from its cluster"), "{output}");

        cluster.start_api_server();
        let wider = json!({
            "ports": [{ "device": "port", "tenant": "umbrella" }],
            "rules": [{ "name": "r", "underlay": "cubic" }],
        });
        cluster.apply(&policy("base", wider));
        agent.has_ports(&[("port", "umbrella")]);
        agent
            .comes_to("told", || field(cluster, "vccpolicies/base", "/status/everywhere") == "1/1");
    });
}

#[test]
fn a_reload_changes_nothing_and_is_no_problem_of_the_node() {
    on_a_node(|cluster| {
        let _pod_side = guest();
        let agent = under_base(cluster);
        let output = agent.vcc("policy apply").complaint(1);
        assert!(output.contains("this host takes its policy from its cluster"), "{output}");
        let pid = agent.child.as_ref().expect("a process").id();
        let sent = Command::new("kill").args(["-HUP", &pid.to_string()]).status().expect("kill");
        assert!(sent.success());
        let log = || std::fs::read_to_string(agent.directory.path().join("log")).expect("a log");
        agent.comes_to("both are answered", || {
            log().matches("the previous policy stays in force: this host takes its policy").count()
                == 2
        });
        assert_eq!(agent.status()["problems"], json!([]));
        let log_text = log();
        let (_, address) = log_text.split_once("web page at http://").expect("an address");
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
        let pod_side = guest();
        ip("link add port2 type veth peer name guest2");
        let rules = json!([{ "name": "r", "underlay": "dctcp" }]);
        let selectors = json!([{ "device": "port*", "tenant": "acme" }]);
        let mut agent = Agent::start(&cluster.kubeconfig());
        cluster.apply(&policy("base", json!({ "ports": selectors, "rules": rules })));
        agent.has_ports(&[("port", "acme"), ("port2", "acme")]);
        let epoch = agent.status()["epoch"].clone();
        let _talk = connect(&pod_side);
        cluster.stop_api_server();
        agent.kill();
        agent.forget();
        agent.run();
        agent.comes_to("it answers", || agent.status()["ports"][0]["device"] == "port");
        std::thread::sleep(Duration::from_secs(2));
        let stays = || {
            let status = agent.status();
            let ports = status["ports"].as_array().expect("ports");
            assert_eq!((ports.len(), &status["epoch"]), (2, &epoch));
            assert!(ports.iter().all(|port| port["draining"] == false), "{ports:?}");
        };
        stays();
        // Nor do they change when a device of one comes back, which has a connection.
        let (here, elsewhere) = (Netns::current(), Netns::create());
        let (here, elsewhere) = (here.expect("a namespace"), elsewhere.expect("a namespace"));
        ip(&format!("link set port netns {}", elsewhere.path()));
        agent.logs("port was moved to another network namespace");
        std::thread::sleep(Duration::from_secs(2));
        let back = || ip(&format!("link set port netns {}", here.path()));
        elsewhere.inside(back).expect("inside");
        agent.logs("port has come back");
        stays();
        cluster.start_api_server();
        agent.has_ports(&[("port", "acme"), ("port2", "acme")]);
    });
}

/// It is under the policy, and translated.
#[track_caller]
fn is_under_the_policy(streams: &mut (TcpStream, TcpStream), epoch: impl Fn(u8) -> bool) {
    exchange(&mut streams.0, &mut streams.1);
    let port = Port::open("port").expect("open");
    let flows = port.flows().expect("flows");
    assert_eq!(flows.len(), 1);
    assert!(flows[0].depends_on_translation());
    assert!(!flows[0].state.has(vcc_engine::sys::FLOW_RELEASED));
    assert!(epoch(flows[0].state.epoch), "{}", flows[0].state.epoch);
    assert_eq!(port.counters().expect("counters").get(counters::UNKNOWN), 0);
}

#[test]
fn a_version_with_another_layout_takes_connections_over_under_the_policy_that_it_remembers() {
    on_a_node(|cluster| {
        let guest = guest();
        // Without scales and ECN, a policy that leaves the connection alone has it forgotten.
        let without = || {
            for option in ["tcp_window_scaling", "tcp_ecn"] {
                std::fs::write(format!("/proc/sys/net/ipv4/{option}"), "0").expect("written");
            }
        };
        without();
        guest.inside(without).expect("inside");
        let mut agent = under_base(cluster);
        let mut streams = connect(&guest);
        exchange(&mut streams.0, &mut streams.1);
        cluster.stop_api_server();
        agent.kill();
        Host::make_foreign(true).expect("foreign");
        agent.run();
        agent.keeps_running();
        exchange(&mut streams.0, &mut streams.1);
        let port = Port::open("port").expect("open");
        let flows = port.flows().expect("flows");
        assert_eq!(flows.len(), 1);
        assert!(!flows[0].depends_on_translation());
        assert_eq!(port.counters().expect("counters").get(counters::UNKNOWN), 0);
    });
}

#[test]
fn a_version_with_another_layout_waits_for_a_policy_before_it_takes_ports_over() {
    on_a_node(|cluster| {
        let guest = guest();
        let mut agent = under_base(cluster);
        let mut streams = connect(&guest);
        is_under_the_policy(&mut streams, |_| true);
        cluster.stop_api_server();
        agent.kill();
        agent.forget();
        Host::make_foreign(true).expect("foreign");
        agent.run();
        agent.waits_for_a_policy();
        exchange(&mut streams.0, &mut streams.1);
        cluster.start_api_server();
        agent.keeps_running();
        is_under_the_policy(&mut streams, |epoch| epoch > 0);
    });
}

/// One that is asked to end meanwhile does.
#[test]
fn a_waiting_daemon_ends_when_asked_to() {
    on_a_node(|cluster| {
        let _guest = guest();
        let mut agent = under_base(cluster);
        cluster.stop_api_server();
        agent.kill();
        agent.forget();
        Host::make_foreign(true).expect("foreign");
        agent.run();
        agent.waits_for_a_policy();
        let mut child = agent.child.take().expect("it runs");
        // SAFETY: the call takes no pointers; the child has not been waited for.
        assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) }, 0);
        assert_eq!(child.wait().expect("its end").code(), Some(0));
        assert!(Port::list().expect("a list").iter().any(|port| port.device() == "port"));
    });
}

#[test]
fn a_revoked_token_is_reported_on_the_node() {
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
fn a_newer_version_is_reported_and_the_last_one_stays() {
    on_a_node(|cluster| {
        let _pod_side = guest();
        let mut agent = under_base(cluster);
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
