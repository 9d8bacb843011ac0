//! Connections that a port does not know, where it polices.

use vcc_policy::Policy;
use vcc_testing::guest;

use super::talk::Talk;
use super::*;
use crate::{Host, Predecessor};

const LONG_AGO_S: u32 = 1;

fn policing(unknown_grace_s: u32) -> AttachOptions {
    AttachOptions::from_params(Params::with(|p| {
        p.police = 1;
        p.unknown_grace_s = unknown_grace_s;
    }))
}

fn counted(port: &Port, counter: crate::Counter) -> u64 {
    port.counters().expect("counters").get(counter)
}

fn attached_s(port: &Port) -> u32 {
    port.settings().expect("read").attached_s
}

fn age(port: &Port) {
    port.change(|port| port.attached_s = LONG_AGO_S).expect("changed");
}

#[test]
fn a_connection_that_is_older_than_the_port_has_its_grace() {
    on_a_host(|| {
        let netns = guest();
        let mut talk = Talk::begin(&netns);
        let port = Port::attach(PORT, &policing(300)).expect("attached");
        talk.goes_on();
        let left_s = port.unknown_dropped_in_s(None).expect("read").expect("it polices");
        assert!((1..=300).contains(&left_s), "{left_s}");

        age(&port);
        port.change_params(|params| params.0.unknown_grace_s = 0).expect("changed");
        assert_eq!(port.unknown_dropped_in_s(None).expect("read"), Some(0));
        assert_eq!(counted(&port, counters::UNKNOWN_DROPPED), 0);
        talk.says_in_vain();
        eventually("it is dropped", || counted(&port, counters::UNKNOWN_DROPPED) > 0);
        // Connections that begin now continue.
        Talk::begin(&netns).goes_on();
        // Nothing of it is lost if the operator thinks better of it.
        port.change_params(|params| params.0.on_unknown = sys::ON_UNKNOWN_PASS as u8)
            .expect("changed");
        assert_eq!(port.unknown_dropped_in_s(None).expect("read"), None);
        talk.hears();
    });
}

/// The time stays over processes, newer programs, and another version's maps.
#[test]
fn an_upgrade_begins_no_grace() {
    on_a_host(|| {
        let _netns = guest();
        let port = attach_pinned(PORT, &policing(300)).expect("attached");
        assert!(attached_s(&port) > LONG_AGO_S);
        age(&port);
        drop(port);
        assert!(Host::open().expect("a host").take_over_if(|_, _| true).expect("replaced").1);
        assert_eq!(attached_s(&Port::open(PORT).expect("open")), LONG_AGO_S);
        Host::make_foreign(true).expect("foreign");
        assert_eq!(Predecessor::succeed(|_, _| Ok(())).expect("taken over").len(), 1);
        let port = Port::open(PORT).expect("open");
        assert_eq!(attached_s(&port), LONG_AGO_S);

        // While it drains, connections begin that it does not know.
        port.drain().expect("drains");
        assert_eq!(port.unknown_dropped_in_s(None).expect("read"), None);
        port.resume(&policing(300)).expect("resumed");
        assert!(attached_s(&port) > LONG_AGO_S);
        // Likewise in the tunnels that it did not look into.
        age(&port);
        let vxlan = vcc_policy::TunnelKind::named("vxlan").expect("a kind");
        port.set_inside([vxlan].into_iter().collect()).expect("set");
        assert!(attached_s(&port) > LONG_AGO_S);
        age(&port);
        port.set_inside(vcc_policy::Tunnels::NONE).expect("set");
        assert_eq!(attached_s(&port), LONG_AGO_S);
        port.detach().expect("detached");
    });
}

/// The rules of other tenants do not count.
#[test]
fn the_time_that_is_left_is_that_of_the_ports_rules() {
    on_a_host(|| {
        let _netns = guest();
        let shared = SharedPolicy::open().expect("a policy");
        let host = Host::open().expect("a host");
        let apply = |rules: &str| {
            let ports = "[[ports]]\ndevice = \"port\"\ntenant = \"acme\"\n\
                         [[ports]]\ndevice = \"b*\"\ntenant = \"bolt\"\n";
            let policy = Policy::parse(&format!("{ports}{rules}"), "policy.toml");
            let policy = policy.unwrap_or_else(|wrong| panic!("{wrong}")).policy;
            shared.apply(&policy, &[(0, Some("acme").into())]).expect("applied");
        };
        let of_bolt = "[[rules]]\nname = \"b\"\ntenant = \"bolt\"\npolice = true\n\
                       guest_ecn = \"override\"\n";
        let police = "police = true\nguest_ecn = \"override\"\n";
        apply(&format!("{of_bolt}[default]\n"));
        let options = AttachOptions::default();
        let port =
            Port::attach_pinned_under(&host, PORT, &options, |_| Ok(())).expect("attached").0;
        let left_s = || port.unknown_dropped_in_s(Some(&shared)).expect("read");
        assert_eq!(left_s(), None);
        age(&port);
        // A rule that begins to police has a grace of its own, and keeps it.
        apply(&format!("{of_bolt}[default]\n{police}"));
        assert!(left_s().is_some_and(|left_s| left_s > 0));
        apply(&format!("{of_bolt}[default]\n{police}unknown_grace = \"0s\"\n"));
        assert_eq!(left_s(), Some(0));
        port.detach().expect("detached");
        shared.remove().expect("removed");
    });
}
