//! What tests may expect of a cluster.

use serde_json::Value;
use vcc_testing::kubernetes::Cluster;

const POD: &str = r#"
apiVersion: v1
kind: Namespace
metadata: { name: tenant }
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: worker, namespace: tenant }
---
apiVersion: v1
kind: Node
metadata: { name: node-a }
---
apiVersion: v1
kind: Pod
metadata: { name: worker, namespace: tenant }
spec:
  nodeName: node-a
  serviceAccountName: worker
  containers: [{ name: main, image: none }]
"#;

#[test]
fn a_pods_token_names_its_node() {
    let Some(cluster) = Cluster::shared() else { return };
    cluster.apply(POD);
    let token = cluster.pod_token("tenant", "worker", "worker");
    let kubeconfig = cluster.kubeconfig_with_token("worker", &token);

    let output = cluster.try_kubectl(&kubeconfig, &["auth", "whoami", "-o", "json"], "");
    let output: Value = serde_json::from_str(&output.expect("an answer")).expect("JSON");
    let user = &output["status"]["userInfo"];
    assert_eq!(user["username"], "system:serviceaccount:tenant:worker");
    assert_eq!(user["extra"]["authentication.kubernetes.io/node-name"][0], "node-a", "{user}");
}

#[test]
fn a_user_may_do_what_is_granted() {
    let Some(cluster) = Cluster::shared() else { return };
    let reader = cluster.kubeconfig_of("reader", &["readers"]);
    let read = ["get", "nodes"];
    let refused = cluster.try_kubectl(&reader, &read, "").expect_err("nothing is granted");
    assert!(refused.contains(r#"User "reader" cannot list resource "nodes""#), "{refused}");

    cluster.kubectl(&["create", "clusterrole", "read", "--verb=list", "--resource=nodes"]);
    cluster.kubectl(&[
        "create",
        "clusterrolebinding",
        "read",
        "--clusterrole=read",
        "--group=readers",
    ]);
    cluster.try_kubectl(&reader, &read, "").expect("granted");
}

#[test]
fn an_outage_ends_with_what_had_been_written() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.kubectl(&["create", "namespace", "kept"]);
    let get = ["get", "namespace", "kept", "--request-timeout=2s"];

    cluster.pause_api_server();
    cluster.try_kubectl(&cluster.kubeconfig(), &get, "").expect_err("it does not answer");
    cluster.resume_api_server();
    cluster.kubectl(&get);

    cluster.stop_api_server();
    let refused = cluster.try_kubectl(&cluster.kubeconfig(), &get, "").expect_err("it is gone");
    assert!(refused.contains("refused"), "{refused}");
    cluster.stop_etcd();
    cluster.start_etcd();
    cluster.start_api_server();
    cluster.kubectl(&get);
}
