use vcc_engine::Mode;
use vcc_policy::{Connection, Policy, Role};

const POLICY: &str = r#"
[[ports]]
device = "vnet-acme-*"
tenant = "acme"
max_flows = 1000

[[ports]]
device = "vnet*"

[[pools]]
name = "gold"
window = "2M"

[[rules]]
name = "legacy web"
tenant = "acme"
peer = ["10.0.0.0/8", "fd00::/8"]
guest_port = [80, "8000-8100"]
role = "server"
mode = "enforce"
underlay = "dctcp"
guest_ecn = "override"
police = true
pool = "gold"
weight = 3

[[rules]]
name = "tagged"
vlan = [12, 13]
mode = "ignore"

[[rules]]
name = "beyond"
peer = "::/0"
mode = "shadow"

[default]
underlay = "cubic"
"#;

fn policy() -> Policy {
    let checked = Policy::parse(POLICY, "policy.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(checked.warnings.is_empty(), "{:?}", checked.warnings);
    checked.policy
}

fn connection() -> Connection {
    Connection {
        tenant: Some("acme".to_owned()),
        class: None,
        guest: "192.0.2.1:8050".parse().unwrap(),
        peer: "10.1.2.3:40000".parse().unwrap(),
        vlan: None,
        role: Role::Server,
    }
}

#[track_caller]
fn judged(c: &Connection) -> &'static str {
    let (policy, compiled) = (policy(), policy().compile());
    let judged = policy.judge(c);
    assert_eq!(compiled.judge(&compiled.port_set(c.affiliation()), c), judged);
    ["legacy web", "tagged", "beyond", "default"]
        .into_iter()
        .find(|name| policy.rules()[judged].name() == *name)
        .expect("one of them")
}

#[test]
fn every_condition_counts() {
    let c = connection;
    assert_eq!(judged(&c()), "legacy web");
    assert_eq!(judged(&Connection { tenant: None, ..c() }), "default");
    assert_eq!(judged(&Connection { tenant: Some("b".into()), ..c() }), "default");
    assert_eq!(judged(&Connection { role: Role::Client, ..c() }), "default");
    assert_eq!(judged(&Connection { guest: "192.0.2.1:81".parse().unwrap(), ..c() }), "default");
    assert_eq!(judged(&Connection { peer: "11.0.0.0:1".parse().unwrap(), ..c() }), "default");
    let tagged = Connection { vlan: Some(12), peer: "11.0.0.0:1".parse().unwrap(), ..c() };
    assert_eq!(judged(&tagged), "tagged");
    assert_eq!(judged(&Connection { vlan: Some(14), ..tagged }), "default");
}

#[test]
fn families_of_addresses_are_apart() {
    let c = |peer: &str| Connection { peer: peer.parse().unwrap(), ..connection() };
    assert_eq!(judged(&c("[fd12::1]:1")), "legacy web");
    assert_eq!(judged(&c("[2001:db8::1]:1")), "beyond");
    assert_eq!(judged(&c("[::]:1")), "beyond");
    assert_eq!(judged(&c("192.0.2.9:1")), "default");
    assert_eq!(judged(&c("[::ffff:10.1.1.1]:1")), "legacy web");
    assert_eq!(judged(&c("[::fffe:10.1.1.1]:1")), "beyond");
}

#[test]
fn ports_and_treatments_are_as_written() {
    let policy = policy();
    let port = policy.port_of("vnet-acme-1").expect("a port");
    assert_eq!((port.tenant(), port.max_flows()), (Some("acme"), 1000));
    let port = policy.port_of("vnet7").expect("a port");
    assert_eq!((port.tenant(), port.max_flows()), (None, 65_536));
    assert!(policy.port_of("eth0").is_none());

    let treatment = policy.rules()[0].treatment();
    assert_eq!(treatment.underlay().name(), "dctcp");
    assert_eq!(treatment.params.0.police, 1);
    assert_eq!((treatment.pool, treatment.weight), (Some(0), 3));
    assert_eq!(policy.pools()[0].window_bytes, 2 << 20);
    assert_eq!(policy.rules()[1].treatment().mode(), Mode::Ignore);
    assert_eq!(policy.rules()[3].name(), "default");
    assert_eq!(policy.rules()[3].treatment().mode(), Mode::Enforce);
}

#[test]
fn the_first_port_that_matches_a_device_decides_who_serves_it() {
    let text = "[[ports]]\ndevice = \"tap1\"\nbuffer = \"8M\"\ntenant = \"deep\"\n\
                [[ports]]\ndevice = \"tap*\"\n[[ports]]\ndevice = \"*\"\nbuffer = \"1M\"\n";
    let policy = Policy::parse(text, "policy.toml").expect("a policy").policy;
    let sizes = |device: &str| {
        let size = |port: &vcc_policy::PortSelector| port.buffer().map(|it| it.size_bytes);
        (policy.port_of(device).map(size), policy.port_of_detour(device).map(size))
    };
    assert_eq!(sizes("tap1"), (None, Some(Some(8 << 20))));
    assert_eq!(sizes("tap2"), (Some(None), None));
    assert_eq!(sizes("veth0"), (None, Some(Some(1 << 20))));
    assert_eq!(policy.port_of_detour("tap1").and_then(|port| port.tenant()), Some("deep"));
    assert!(policy.port_of_socket("tap1").is_none());
}

#[test]
fn without_a_default_the_rest_is_ignored() {
    let policy = Policy::parse("", "policy.toml").expect("a policy").policy;
    assert_eq!(policy.rules().len(), 1);
    assert_eq!(policy.judge(&connection()), 0);
    assert_eq!(policy.rules()[0].treatment().mode(), Mode::Ignore);
}

#[test]
fn the_engine_hears_what_was_written() {
    let text = "[[rules]]\nname = \"x\"\nmode = \"ignore\"\n[default]\nunderlay = \"cubic\"\n\
        guest_ecn = \"override\"\nprr = false\nwindow_cap = \"64K\"\nrate_cap = \"8M\"\n\
        emit = true\nemit_after = \"20ms\"\nidle_closed = \"30s\"\nwindow_floor_segments = 2\n";
    let policy = Policy::parse(text, "policy.toml").expect("a policy").policy;
    let params = |rule: usize| policy.rules()[rule].treatment().params.0;
    let expected = vcc_engine::Params::default().0;
    let ignore = Mode::Ignore.number();
    assert_eq!(params(0), vcc_engine::sys::vcc_params { mode: ignore, ..expected });
    let expected = vcc_engine::sys::vcc_params {
        underlay: "cubic".parse::<vcc_engine::Underlay>().unwrap().number(),
        guest_ecn: vcc_engine::GuestEcn::Override.number(),
        prr: 0,
        window_cap_bytes: 65_536,
        rate_cap_bytes_per_ms: 1000,
        emit: 1,
        emit_after_us: 20_000,
        idle_closed_ms: 30_000,
        window_floor_segs: 2,
        ..expected
    };
    assert_eq!(params(1), expected);
}

#[test]
fn integers_of_any_radix() {
    let text = "[[pools]]\nname = \"gold\"\nwindow = 0o40_0000\n[default]\npool = \"gold\"\n\
        underlay = \"dctcp-priority\"\npriority = 0b1\nwindow_cap = 0x1_0000\n\
        rate_cap = 0x7A_1200\ninitial_window_segments = 0x10\n";
    let policy = Policy::parse(text, "policy.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let params = policy.policy.rules()[0].treatment().params.0;
    assert_eq!(policy.policy.pools()[0].window_bytes, 1 << 17);
    assert_eq!(
        (params.beta_1024, params.window_cap_bytes, params.rate_cap_bytes_per_ms),
        (1024, 65_536, 1000)
    );
    assert_eq!(params.initial_window_segs, 16);
}
