//! Connections that come to a port with their guest.

use vcc_policy::{Affiliation, Policy};
use vcc_testing::guest;

use super::talk::Talk;
use super::*;
use crate::plain::to_bytes;
use crate::{Arrived, Host};

const DCTCP: &str = "[default]\nunderlay = \"dctcp\"";

/// A connection, described where it was, and a port that has forgotten it.
fn moved(talk: &mut Talk, from: Port, to: &AttachOptions) -> (Vec<Flow>, Port) {
    talk.goes_on();
    let flows = from.flows().expect("flows");
    assert_eq!(flows.len(), 1);
    from.detach().expect("detached");
    (flows, attach_pinned(PORT, to).expect("attached"))
}

#[test]
fn a_connection_goes_on_as_it_was() {
    on_a_host(|| {
        let netns = guest();
        let from = pinned();
        let mut talk = Talk::begin(&netns);
        let (flows, to) = moved(&mut talk, from, &AttachOptions::default());
        let before = flows[0].state;
        assert!(before.depends_on_translation());
        // A later export of the same connection, before its guest has come, is the better one.
        for _ in 0..2 {
            assert_eq!(to.take_over(&flows).expect("run"), [Arrived::Translated]);
            assert_eq!(to.usage().expect("usage").flows, 1);
        }
        talk.goes_on();
        let state = to.flows().expect("flows")[0].state;
        assert_eq!(to.counters().expect("counters").get(counters::UNKNOWN), 0);
        assert_eq!((state.wscale_shown, state.lags), (before.wscale_shown, 0));
        // One of before the guest came is not.
        assert_eq!(to.take_over(&flows).expect("run"), [Arrived::Known]);
        assert_eq!(to.flows().expect("flows")[0].state.snd_una, state.snd_una);
        assert_eq!(to.usage().expect("usage").flows, 1);
        to.detach().expect("detached");
    });
}

#[test]
fn a_guest_comes_back_to_a_connection_that_has_stayed() {
    on_a_host(|| {
        let netns = guest();
        let port = pinned();
        let mut talk = Talk::begin(&netns);
        talk.goes_on();
        let mut later = port.flows().expect("flows");
        let stayed = later[0].state;
        later[0].state.0.snd_una = stayed.snd_una.wrapping_add(5_000_000);
        later[0].state.0.snd_nxt = later[0].state.snd_una;
        // Whoever has gone has been silent for as long (engine/arrival.h).
        thread::sleep(Duration::from_millis(5_001));
        assert_eq!(port.take_over(&later).expect("run"), [Arrived::Translated]);
        let came_back = port.flows().expect("flows")[0].state;
        assert_eq!((came_back.snd_una, came_back.lags), (stayed.snd_una, 3));
        talk.goes_on();
        assert_eq!(port.flows().expect("flows")[0].state.lags, 0);
        assert_eq!(port.usage().expect("usage").flows, 1);
        port.detach().expect("detached");
    });
}

#[test]
fn no_description_touches_a_connection_that_goes_on_here() {
    on_a_host(|| {
        let netns = guest();
        let port = pinned();
        let mut talk = Talk::begin(&netns);
        let described = |change: fn(&mut sys::vcc_flow)| {
            let mut flow = port.flows().expect("flows").remove(0);
            change(&mut flow.state.0);
            [flow]
        };
        let cases: [(fn(&mut sys::vcc_flow), _); 3] = [
            (|flow| flow.mss_bytes = 0, Arrived::Impossible),
            (|flow| flow.wscale_shown = 15, Arrived::Impossible),
            (
                |flow| {
                    flow.snd_una = flow.snd_una.wrapping_add(5_000_000);
                    flow.snd_nxt = flow.snd_una;
                    flow.wscale_peer = 0;
                    flow.wscale_shown = 0;
                },
                Arrived::Known,
            ),
        ];
        for (change, becomes) in cases {
            talk.goes_on();
            let flow = described(change);
            let bytes = || {
                let flow = port.flows().expect("flows").remove(0);
                let whole = sys::vcc_arrival { key: flow.id().key(0), flow: flow.state.0 };
                to_bytes(&whole).to_vec()
            };
            let before = bytes();
            assert_eq!(port.take_over(&flow).expect("run"), [becomes]);
            assert!(bytes() == before, "changed by what is {becomes:?}");
            assert_eq!(port.usage().expect("usage").flows, 1);
        }
        talk.goes_on();
        assert_eq!(port.counters().expect("counters").get(counters::UNKNOWN), 0);
        port.detach().expect("detached");
    });
}

#[test]
fn an_impossible_description_does_not_end_one_that_waits_for_its_guest() {
    on_a_host(|| {
        let netns = guest();
        let from = pinned();
        let mut talk = Talk::begin(&netns);
        let (flows, to) = moved(&mut talk, from, &AttachOptions::default());
        assert_eq!(to.take_over(&flows).expect("run"), [Arrived::Translated]);
        let mut wrong = flows.clone();
        wrong[0].state.0.mss_bytes = 0;
        assert_eq!(to.take_over(&wrong).expect("run"), [Arrived::Impossible]);
        talk.goes_on();
        assert_eq!(to.counters().expect("counters").get(counters::UNKNOWN), 0);
        to.detach().expect("detached");
    });
}

#[test]
fn what_cannot_arrive_leaves_nothing() {
    on_a_host(|| {
        let netns = guest();
        let from = pinned();
        let mut talk = Talk::begin(&netns);
        let one = AttachOptions { max_flows: 1, ..AttachOptions::default() };
        let (flows, to) = moved(&mut talk, from, &one);
        let refused = |flows: &[Flow], why| {
            assert_eq!(to.take_over(flows).expect("run"), [why]);
            assert_eq!(to.usage().expect("usage").flows, to.flows().expect("flows").len() as u32);
        };
        let mut wrong = flows[0].clone();
        wrong.state.0.mss_bytes = 0;
        refused(&[wrong], Arrived::Impossible);
        assert_eq!(to.take_over(&flows).expect("run"), [Arrived::Translated]);
        let mut other = flows[0].clone();
        other.peer.set_port(1);
        refused(&[other], Arrived::NoRoom);
        to.drain().expect("drained");
        let mut third = flows[0].clone();
        third.peer.set_port(2);
        refused(&[third], Arrived::Draining);
        to.detach().expect("detached");
    });
}

#[test]
fn the_policy_of_the_host_decides_what_becomes_of_it() {
    on_a_host(|| {
        let netns = guest();
        let shared = SharedPolicy::open().expect("a policy");
        let apply = |text: &str| {
            let policy =
                Policy::parse(text, "policy.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
            shared.apply(&policy.policy, &[(0, Affiliation::default())]).expect("applied");
        };
        let under = || {
            let host = Host::open().expect("a host");
            let options = AttachOptions::default();
            Port::attach_pinned_under(&host, PORT, &options, |_| Ok(())).expect("attached").0
        };
        apply(DCTCP);
        let port = under();
        let mut talk = Talk::begin(&netns);
        talk.goes_on();
        let flows = port.flows().expect("flows");
        port.detach().expect("detached");

        // Its window becomes one of the pool here, and of the underlay of the rule here.
        apply(
            "[[ports]]\ndevice = \"port\"\n[[pools]]\nname = \"p\"\nwindow = \"100K\"\n\
             [default]\nunderlay = \"cubic\"\npool = \"p\"",
        );
        let port = under();
        assert_eq!(port.take_over(&flows).expect("run"), [Arrived::Translated]);
        talk.goes_on();
        let cubic: vcc_engine::Underlay = "cubic".parse().expect("an underlay");
        assert_eq!(port.flows().expect("flows")[0].state.underlay, cubic.number());
        assert_eq!(shared.rule_totals().expect("totals")[0].connections, 1);
        assert!(shared.pools().expect("pools")[0].held_bytes > 0);
        port.detach().expect("detached");
        let used = &shared.pools().expect("pools")[0];
        assert_eq!((used.held_bytes, used.weight), (0, 0));

        // One that depends on translation is translated to its end, under any policy.
        apply("[default]\nmode = \"ignore\"");
        let port = under();
        assert_eq!(port.take_over(&flows).expect("run"), [Arrived::Translated]);
        talk.goes_on();
        assert!(port.flows().expect("flows")[0].state.has(sys::FLOW_RELEASED));
        let mut free = flows[0].clone();
        free.peer.set_port(1);
        free.state.0.wscale_shown = free.state.wscale_peer;
        free.state.0.flags &= !sys::FLOW_ECN_FABRIC;
        assert_eq!(port.take_over(&[free]).expect("run"), [Arrived::LeftAlone]);
        assert_eq!(port.usage().expect("usage").flows, 1);
        port.detach().expect("detached");
        shared.remove().expect("removed");
    });
}
