//! The device of a pod is found under any CNI plugin.

use std::fs;

use serde_json::json;
use vcc_testing::{guest, ip};

use super::*;

fn policy_for_all() -> String {
    policy("base", json!({ "ports": [{ "pods": {}, "tenant": "pods" }], "default": {} }))
}

#[test]
fn by_the_plugin_s_result_before_anybody_knows_an_address() {
    on_a_node(|cluster| {
        let agent = Agent::start(&cluster.kubeconfig());
        cluster.apply(&namespace("shop", json!({})));
        cluster.apply(&pod("shop", "web", json!({})));
        cluster.apply(&policy_for_all());
        agent.comes_to("in force", || {
            field(cluster, "vccpolicies/base", "/status/everywhere") == "1/1"
        });

        // As libcni writes it when the plugins have returned.
        let _pod_side = guest();
        let uid = cluster.kubectl(&[
            "get",
            "pod",
            "web",
            "--namespace",
            "shop",
            "-o",
            "jsonpath={.metadata.uid}",
        ]);
        let results = agent.cni_cache().join("results");
        fs::create_dir_all(&results).expect("a directory");
        let result = json!({
            "kind": "cniCacheV1", "containerId": "c", "networkName": "cbr0", "ifName": "eth0",
            "cniArgs": [["K8S_POD_NAMESPACE", "shop"], ["K8S_POD_NAME", "web"], ["K8S_POD_UID", uid]],
            "result": { "cniVersion": "1.0.0", "interfaces": [
                { "name": "cni0" }, { "name": "port" }, { "name": "guest", "sandbox": "/run/netns/x" },
            ]},
        });
        fs::write(results.join("cbr0-c-eth0"), result.to_string()).expect("a file");
        agent.has_ports(&[("port", "pods")]);
        ip("link delete port");
        agent.has_ports(&[]);
    });
}

#[test]
fn by_the_address_of_the_other_end() {
    on_a_node(|cluster| {
        // As flannel's and the bridge plugin's: the route leads to the bridge.
        ip("link add cni0 type bridge");
        ip("link set cni0 up");
        let _pod_side = guest();
        ip("address delete 192.0.2.2/24 dev port");
        ip("link set port master cni0");
        ip("address add 192.0.2.2/24 dev cni0");
        let agent = Agent::start(&cluster.kubeconfig());
        cluster.apply(&namespace("shop", json!({})));
        cluster.apply(&pod("shop", "web", json!({})));
        has_address(cluster, "shop", "web", "192.0.2.1");
        cluster.apply(&policy_for_all());
        agent.has_ports(&[("port", "pods")]);
        // Another pod of the node's own network has none.
        let mut host_network: Value =
            serde_json::from_str(&pod("shop", "monitor", json!({}))).expect("JSON");
        host_network["spec"]["hostNetwork"] = true.into();
        cluster.apply(&host_network.to_string());
        has_address(cluster, "shop", "monitor", "192.0.2.2");
        cluster.kubectl(&["label", "pod", "web", "--namespace", "shop", "a=b"]);
        agent.has_ports(&[("port", "pods")]);
    });
}

#[test]
fn by_the_route_to_its_address() {
    on_a_node(|cluster| {
        // As Calico's: the other end has an address that several devices have.
        let pod_side = guest();
        let address = "ip address flush dev guest";
        pod_side.inside(|| ip(address.strip_prefix("ip ").expect("ip"))).expect("inside");
        ip("address flush dev port");
        ip("route add 10.1.2.3/32 dev port");
        let agent = Agent::start(&cluster.kubeconfig());
        cluster.apply(&namespace("shop", json!({})));
        cluster.apply(&pod("shop", "web", json!({})));
        has_address(cluster, "shop", "web", "10.1.2.3");
        cluster.apply(&policy_for_all());
        agent.has_ports(&[("port", "pods")]);
    });
}
