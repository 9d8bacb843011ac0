//! What the manifests grant is what an agent needs.

use serde_json::json;
use vcc_testing::guest;

use super::*;

#[test]
fn an_agent_does_all_its_work_with_what_the_manifests_grant() {
    on_a_node(|cluster| {
        let _pod_side = guest();
        let packaging = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/kubernetes");
        let manifest = Path::new(packaging).join("agent.yaml");
        cluster.apply(&std::fs::read_to_string(manifest).expect("the manifest"));
        cluster.apply(
            &pod("vcc", "vcc-1", json!({}))
                .replace("\"containers\"", "\"serviceAccountName\":\"vcc\",\"containers\""),
        );
        let token = cluster.pod_token("vcc", "vcc", "vcc-1");
        let agent = Agent::start(&cluster.kubeconfig_with_token("agent", &token));
        // It watches all that there is to watch.
        let peers = json!({ "matchLabels": { "a": "b" } });
        let rules = json!([{ "name": "r", "peer_namespaces": peers, "peer_pods": peers }]);
        cluster.apply(&policy("base", json!({ "ports": [{ "device": "port" }], "rules": rules })));
        agent.comes_to("its status and the summary are written", || {
            field(cluster, "vccpolicy/base", ".status.everywhere") == "1/1"
        });
        let owner = field(cluster, &format!("vccnode/{NODE}"), ".metadata.ownerReferences[0].name");
        assert_eq!(owner, NODE);
        let of_lease = |path: &str| {
            let output = format!("jsonpath={{.spec.{path}}}");
            let get = ["get", "lease", "vcc-summary", "--namespace", "vcc", "-o", &output];
            cluster.kubectl(&get)
        };
        assert_eq!(of_lease("holderIdentity"), NODE);
        agent.comes_to("it renews", || of_lease("renewTime") != of_lease("acquireTime"));
        assert_eq!(agent.status()["problems"], json!([]));
    });
}
