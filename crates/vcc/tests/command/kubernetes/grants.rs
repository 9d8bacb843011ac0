//! What the manifests grant is what an agent needs.

use serde_json::json;
use vcc_testing::guest;

use super::*;

fn manifest() -> String {
    let packaging = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/kubernetes");
    let manifest = Path::new(packaging).join("agent.yaml");
    std::fs::read_to_string(manifest).expect("the manifest")
}

/// An agent that may do what the manifest says.
fn granted(cluster: &Cluster, manifest: &str) -> Agent {
    cluster.apply(manifest);
    cluster.apply(
        &pod("vcc", "vcc-1", json!({}))
            .replace("\"containers\"", "\"serviceAccountName\":\"vcc\",\"containers\""),
    );
    let token = cluster.pod_token("vcc", "vcc", "vcc-1");
    Agent::start(&cluster.kubeconfig_with_token("agent", &token))
}

#[test]
fn an_agent_does_all_its_work_with_what_the_manifests_grant() {
    on_a_node(|cluster| {
        let _pod_side = guest();
        let agent = granted(cluster, &manifest());
        // It watches all that there is to watch.
        let peers = json!({ "matchLabels": { "a": "b" } });
        let rules = json!([{ "name": "r", "peer_namespaces": peers, "peer_pods": peers }]);
        cluster.apply(&policy("base", json!({ "ports": [{ "device": "port" }], "rules": rules })));
        agent.comes_to("its status and the summary are written", || {
            field(cluster, "vccpolicies/base", "/status/everywhere") == "1/1"
        });
        let owner = field(cluster, &format!("vccnodes/{NODE}"), "/metadata/ownerReferences/0/name");
        assert_eq!(owner, NODE);
        let of_lease = |field: &str| {
            let path = "/apis/coordination.k8s.io/v1/namespaces/vcc/leases/vcc-summary";
            text(Some(&cluster.object(path).expect("a lease")["spec"][field]))
        };
        assert_eq!(of_lease("holderIdentity"), NODE);
        agent.comes_to("it renews", || of_lease("renewTime") != of_lease("acquireTime"));
        assert_eq!(agent.status()["problems"], json!([]));
    });
}

#[test]
fn a_node_that_may_not_read_what_its_policies_ask_for_counts_and_says_why() {
    on_a_node(|cluster| {
        let (both, pods) = ("[\"pods\", \"namespaces\"]", "[\"pods\"]");
        let manifest = manifest();
        assert!(manifest.contains(both), "{manifest}");
        let everyone = json!({ "matchLabels": { "team": "a" } });
        let ports = json!([{ "namespaces": everyone, "pods": {} }]);
        cluster.apply(&policy("base", json!({ "ports": ports })));
        let agent = granted(cluster, &manifest.replace(both, pods));
        let everywhere = || field(cluster, "vccpolicies/base", "/status/everywhere");
        agent.comes_to("it counts", || everywhere() == "0/1");
        agent.comes_to("it says why", || {
            let problem = field(cluster, &format!("vccnodes/{NODE}"), "/status/problem");
            problem.starts_with("cannot watch namespaces: the API server answered 403")
        });
        cluster.apply(&manifest);
        agent.comes_to("it has all that it needs", || everywhere() == "1/1");
        agent.comes_to("nothing is wrong", || {
            field(cluster, &format!("vccnodes/{NODE}"), "/status/problem").is_empty()
        });
    });
}
