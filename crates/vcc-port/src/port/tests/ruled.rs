//! Ports under a policy. Policy, ports and connections outlive processes.

use vcc_policy::{Affiliation, Policy};
use vcc_testing::{Netns, guest};

use super::talk::Talk;
use super::*;
use crate::host::FROM_GUEST;
use crate::object::spoilt;

const INDEX: u32 = 0;

fn policy(text: &str) -> Policy {
    Policy::parse(text, "policy.toml").unwrap_or_else(|wrong| panic!("{wrong}")).policy
}

fn attach_under(shared: &SharedPolicy) -> Port {
    let host = Host::open().expect("a host");
    let options = AttachOptions::default();
    let admit = |index| {
        assert_eq!(index, INDEX);
        shared.epoch().map(drop)
    };
    Port::attach_pinned_under(&host, PORT, &options, admit).expect("attached").0
}

#[test]
fn policy_port_and_flows_outlive_their_process() {
    on_a_host(|| {
        let netns = guest();
        let mut talk = {
            let shared = SharedPolicy::open().expect("a policy");
            shared
                .apply(
                    &policy("[default]\nunderlay = \"dctcp\""),
                    &[(INDEX, Affiliation::default())],
                )
                .expect("new");
            let port = attach_under(&shared);
            let talk = Talk::begin(&netns);
            assert_eq!(port.flows().expect("flows").len(), 1);
            talk
        };
        talk.goes_on();
        let shared = SharedPolicy::find().expect("read").expect("there");
        let port = Port::open(PORT).expect("open");
        assert_eq!(port.index().expect("its index"), Some(INDEX));
        assert_eq!(port.flows().expect("flows").len(), 1);
        assert_eq!(shared.rule_names(1).expect("names"), ["default"]);
        assert_eq!(shared.epoch().expect("an epoch"), 1);

        let next = shared
            .apply(&policy("[default]\nunderlay = \"cubic\""), &[(INDEX, Affiliation::default())]);
        assert_eq!(next.expect("another"), 2);
        assert_eq!(port.judge_flows().expect("judged"), 1);
        let state = port.flows().expect("flows")[0].state;
        assert_eq!((state.epoch, state.rule), (2, 0));
        talk.goes_on();
        assert_eq!(shared.rule_totals().expect("totals")[0].connections, 1);

        port.detach().expect("detached");
        shared.remove().expect("removed");
        assert!(SharedPolicy::find().expect("read").is_none());
        assert!(!std::path::Path::new("/sys/fs/bpf/vcc/policy").exists());
    });
}

/// The tables find the rule that the policy does, and say what the rules before it exclude.
#[test]
fn the_tables_judge_as_the_policy_does() {
    on_a_host(|| {
        let shared = SharedPolicy::open().expect("a policy");
        let policy = policy(
            "[[ports]]\ndevice = \"port\"\ntenant = \"acme\"\n[[pools]]\nname = \"gold\"\nwindow = \"2M\"\n\
             [[rules]]\nname = \"a\"\ntenant = \"none\"\npeer = \"10.0.0.0/8\"\n\
             [[rules]]\nname = \"b\"\nguest_port = 80\npeer = [\"10.1.0.0/16\", \"fd00::/8\"]\nvlan = 5\n\
             [[rules]]\nname = \"c\"\npeer_port = 443\nrole = \"server\"\npool = \"gold\"\nweight = 3\n",
        );
        let at = |guest: &str, peer: &str, vlan, role| vcc_policy::Connection {
            tenant: Some("acme".to_owned()),
            class: None,
            guest: guest.parse().expect("an end"),
            peer: peer.parse().expect("an end"),
            vlan,
            role,
        };
        use vcc_policy::Role::{Client, Server};
        let any = at("192.0.2.1:80", "10.1.2.3:443", Some(5), Server);
        assert!(shared.judge(INDEX, &any).expect("read").is_none(), "nothing was applied yet");
        // Either edition.
        for _ in 0..2 {
            shared.apply(&policy, &[(INDEX, Some("acme").into())]).expect("applied");
            for peer in ["10.1.2.3:443", "10.2.2.3:443", "192.0.2.9:1", "[::ffff:10.1.2.3]:1"] {
                for (guest, vlan, role) in [
                    ("192.0.2.1:80", Some(5), Server),
                    ("192.0.2.1:80", None, Server),
                    ("192.0.2.1:81", Some(5), Server),
                    ("192.0.2.1:81", Some(5), Client),
                ] {
                    let connection = at(guest, peer, vlan, role);
                    let found = shared.judge(INDEX, &connection).expect("read").expect("a rule");
                    assert_eq!(found.rule, policy.judge(&connection), "{connection:?}");
                    assert_eq!(found.name, policy.rules()[found.rule].name());
                    assert_eq!(found.misses.len(), found.rule);
                    assert!(found.misses.iter().all(|(_, why)| !why.is_empty()));
                }
            }
        }
        let found = shared.judge(INDEX, &at("192.0.2.1:81", "10.2.2.3:443", None, Server));
        let found = found.expect("read").expect("a rule");
        let (name, why) = &found.misses[1];
        use crate::Property::{GuestPort, Peer, Port as OfPort, Vlan};
        assert_eq!((name.as_str(), &why[..]), ("b", &[Peer, GuestPort, Vlan][..]));
        assert_eq!(found.misses[0], ("a".to_owned(), vec![OfPort]));
        assert_eq!((found.pool, found.treatment.weight), (Some(policy.pools()[0].clone()), 3));
        shared.remove().expect("removed");
    });
}

/// The first port of a host costs what the verifier takes for its programs, once.
#[test]
fn the_programs_of_a_new_host_are_loaded_once() {
    on_a_host(|| {
        let host = Host::open().expect("a host");
        // Whoever loads them now fails.
        let refused = |host: Arc<Host>| spoilt::during(FROM_GUEST, || host.take_over());
        let (host, replaced) = refused(host).expect("nothing is loaded");
        assert!(!replaced);
        let again = Host::open().expect("the same host");
        assert!(refused(again).is_err(), "one that was there is compared with what is loaded");
        drop(host);
        Host::remove_unused().expect("removed");
    });
}

#[test]
fn programs_are_replaced_under_a_connection_that_depends_on_them() {
    on_a_host(|| {
        let netns = guest();
        let shared = SharedPolicy::open().expect("a policy");
        shared
            .apply(&policy("[default]\nunderlay = \"dctcp\""), &[(INDEX, Affiliation::default())])
            .expect("applied");
        drop(attach_under(&shared));
        let mut talk = Talk::begin(&netns);

        let mut port = Port::open(PORT).expect("open");
        let before = program_ids(PORT);
        let (host, replaced) = Host::open().expect("open").take_over().expect("looked at");
        assert!(!replaced && !port.renew().expect("looked at"), "the same programs stay");
        assert_eq!(program_ids(PORT), before);
        assert!(host.take_over_if(|_, _| true).expect("replaced").1);
        assert!(port.renew_if(|_, _| true).expect("replaced"));
        let after = program_ids(PORT);
        assert!(before.iter().all(|id| !after.contains(id)), "{before:?} {after:?}");
        assert_eq!(port.flows().expect("flows").len(), 1);
        talk.goes_on();
        assert_eq!(Port::open(PORT).expect("open").judge_flows().expect("judged"), 1);
        drop(port);
        // The timers of existing flows do not keep the old programs either.
        let gone = || before.iter().all(|id| libbpf_rs::Program::fd_from_id(*id).is_err());
        eventually("the old programs are gone", gone);
        talk.goes_on();
        let port = Port::open(PORT).expect("open");
        assert_eq!(port.counters().expect("counters").get(counters::UNKNOWN), 0);
        port.detach().expect("detached");
    });
}

/// Attaches under a policy with one pool, and opens a connection that belongs to it.
fn pooled() -> (SharedPolicy, Port, Netns, Talk) {
    let netns = guest();
    let shared = SharedPolicy::open().expect("a policy");
    let text = "[[ports]]\ndevice = \"port\"\n[[pools]]\nname = \"p\"\nwindow = \"100K\"\n\
                [default]\nunderlay = \"dctcp\"\npool = \"p\"";
    shared.apply(&policy(text), &[(INDEX, Affiliation::default())]).expect("applied");
    let port = attach_under(&shared);
    let mut talk = Talk::begin(&netns);
    talk.goes_on();
    assert!(shared.pools().expect("pools")[0].held_bytes > 0);
    (shared, port, netns, talk)
}

/// The flows' share of a pool is returned, although no program of the device runs any more.
#[test]
fn a_device_that_vanishes_leaves_nothing_in_a_pool() {
    on_a_host(|| {
        let (shared, port, _netns, _talk) = pooled();
        ip("link delete port");
        assert!(!port.is_attached().expect("read"));
        assert_eq!(port.forget_flows().expect("forgotten"), 1);
        let used = &shared.pools().expect("pools")[0];
        assert_eq!((used.held_bytes, used.weight), (0, 0));
    });
}

#[test]
fn who_is_detached_leaves_nothing_in_a_pool() {
    on_a_host(|| {
        let (shared, port, _netns, _talk) = pooled();
        port.detach().expect("detached");
        let used = &shared.pools().expect("pools")[0];
        assert_eq!((used.held_bytes, used.weight), (0, 0));
    });
}
