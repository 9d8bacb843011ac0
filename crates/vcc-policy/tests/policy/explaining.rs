use vcc_policy::{Connection, Policy, Role};

const POLICY: &str = r#"
[[ports]]
device = "*"
tenant = "acme"

[[pools]]
name = "gold"
window = "2M"

[[rules]]
name = "web"
tenant = ["acme", "other"]
peer = "10.0.0.0/8"
guest_port = [80, "8000-8100"]
role = "server"
vlan = 0
mode = "ignore"

[[rules]]
name = "shared"
peer_port = 443
underlay = "dctcp"
pool = "gold"
weight = 3
rate_cap = "100M"
rto_min = "10ms"
"#;

#[test]
fn why_not_and_why() {
    let checked = Policy::parse(POLICY, "policy.toml").unwrap();
    let c = Connection {
        tenant: None,
        class: None,
        guest: "192.0.2.1:40000".parse().unwrap(),
        peer: "198.51.100.9:443".parse().unwrap(),
        vlan: Some(7),
        role: Role::Client,
    };
    let expected = "\
rule 1 `web` does not match:
    tenant is unknown, not acme or other
    peer is 198.51.100.9, not 10.0.0.0/8
    guest port is 40000, not 80 or 8000-8100
    role is client, not server
    VLAN is 7, not untagged
rule 2 `shared` matches (peer port 443):
    the fabric sees dctcp, under any congestion control of the guest
    its window is a share of the 2M of pool `gold`, with weight 3
    its window is at most 100Mbit/s times its RTT
    settings that are not the default: `rto_min = \"10ms\"`
";
    assert_eq!(checked.policy.explain(&c).to_string(), expected);
}

#[test]
fn what_no_rule_matches_is_left_alone() {
    let checked = Policy::parse("", "policy.toml").unwrap();
    let address = "192.0.2.1:1".parse().unwrap();
    let c = Connection {
        tenant: None,
        class: None,
        guest: address,
        peer: address,
        vlan: None,
        role: Role::Client,
    };
    let expected = "rule 1 `default` matches (any):\n    it passes untouched, and is not tracked\n";
    assert_eq!(checked.policy.explain(&c).to_string(), expected);
}
