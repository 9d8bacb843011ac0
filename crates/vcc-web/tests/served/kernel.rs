//! A snapshot of real ports under a real policy.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use vcc_policy::Policy;
use vcc_port::{AttachOptions, Port, SharedPolicy};
use vcc_testing::{guest, on_a_host};
use vcc_view::Source;
use vcc_web::snapshot::Daemon;
use vcc_web::{Snapshot, collect};

const DEVICE: &str = "port";
const POLICY: &str = r#"
[[ports]]
device = "po*"
tenant = "acme"

[[pools]]
name = "gold-at-night"
window = "8M"

[[pools]]
name = "gold"
window = "2M"

[[rules]]
name = "web"
tenant = "acme"
underlay = "dctcp"
pool = "gold"
"#;

fn policy(text: &str) -> Policy {
    Policy::parse(text, "policy.toml").unwrap_or_else(|wrong| panic!("{wrong}")).policy
}

fn talk(guest: &vcc_port::Netns) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
    let address = listener.local_addr().expect("an address");
    let mut near = guest.inside(|| TcpStream::connect(address)).expect("inside").expect("open");
    let (mut far, _) = listener.accept().expect("accepted");
    near.write_all(&[7; 20_000]).expect("sent");
    far.read_exact(&mut [0; 20_000]).expect("received");
    (near, far)
}

fn taken(shared: &SharedPolicy, port: &Source, policy: &Policy) -> Snapshot {
    collect(Some(shared), std::slice::from_ref(port), Some(policy), Daemon::default())
        .expect("a snapshot")
}

#[test]
fn ports_rules_pools_and_flows_are_what_the_kernel_has() {
    on_a_host(|| {
        let guest = guest();
        let shared = SharedPolicy::unpinned().expect("a policy");
        let first = policy(POLICY);
        shared.apply(&first, &[(3, Some("acme").into())]).expect("applied");
        let port = Port::attach_under(&shared, 3, DEVICE, &AttachOptions::default());
        let port = Source::from(port.expect("attached"));
        let talking = talk(&guest);

        let snapshot = taken(&shared, &port, &first);
        assert_eq!(snapshot.epoch, 1);
        let seen = &snapshot.ports[0];
        assert_eq!(
            (&*seen.port, seen.tenant.as_deref(), seen.index),
            (DEVICE, Some("acme"), Some(3))
        );
        assert_eq!(seen.failure, None);
        assert!(seen.max_flows > Some(0) && seen.counters.len() == vcc_port::counters::ALL.len());
        let rules: Vec<_> =
            snapshot.rules.iter().map(|rule| (&*rule.name, &*rule.mode, &*rule.underlay)).collect();
        assert_eq!(rules[0], ("web", "enforce", "dctcp"));
        assert_eq!((rules[1].0, rules[1].1), ("default", "ignore"));
        assert_eq!(snapshot.rules[0].ended.connections, 1);
        let pools: Vec<_> =
            snapshot.pools.iter().map(|pool| (&*pool.name, pool.window_bytes)).collect();
        assert!(pools.contains(&("gold", Some(2 << 20))), "{pools:?}");
        let [flow] = &snapshot.flows[..] else { panic!("{}", snapshot.flows.len()) };
        assert_eq!((flow.rule.as_deref(), flow.is_current), (Some("web"), true));
        assert_eq!(flow.state.stage(), vcc_engine::Stage::Established);
        assert_eq!((flow.underlay(), flow.port_index), ("dctcp", 0));
        assert!(flow.state.cwnd_segs() > Some(0) && flow.state.srtt_us().is_some());
        assert_eq!(flow.tenant.as_deref(), Some("acme"));

        // The flow is not yet under the next edition; then it is brought under it.
        let second = policy(&POLICY.replace("\"web\"", "\"sites\""));
        shared.apply(&second, &[(3, Some("acme").into())]).expect("applied");
        let flow = taken(&shared, &port, &second).flows[0].clone();
        assert_eq!((flow.rule.as_deref(), flow.is_current), (Some("web"), false));
        let Source::Kernel(in_kernel) = &port else { panic!("a port in the kernel") };
        in_kernel.judge_flows().expect("judged");
        let flow = taken(&shared, &port, &second).flows[0].clone();
        assert_eq!((flow.rule.as_deref(), flow.is_current), (Some("sites"), true));
        drop(talking);
    });
}

#[test]
fn ports_without_a_policy_have_no_rules() {
    on_a_host(|| {
        let guest = guest();
        let port = Port::attach(DEVICE, &AttachOptions::default()).expect("attached");
        let _talking = talk(&guest);
        let snapshot = collect(None, &[port.into()], None, Daemon::default()).expect("a snapshot");
        assert!(snapshot.rules.is_empty() && snapshot.pools.is_empty() && snapshot.epoch == 0);
        assert_eq!((snapshot.ports[0].index, snapshot.flows[0].rule.as_deref()), (None, None));
    });
}
