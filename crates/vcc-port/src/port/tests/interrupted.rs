//! Successions that end half way, as when the process is killed.

use std::fs;
use std::path::Path;

use libbpf_rs::{MapCore, MapFlags};
use vcc_policy::Policy;
use vcc_testing::{Netns, guest};

use super::talk::Talk;
use super::*;
use crate::host::{self, NEXT, PLACE};
use crate::plain::{from_bytes, to_bytes};
use crate::predecessor::Step;
use crate::{Host, Inherited, Predecessor, flows, pins};

const OTHER: u32 = sys::LAYOUT_VERSION + 1;

/// Two guests' ports, of which the first by its name is moved first, and a connection of each.
struct Two {
    _guests: [Netns; 2],
    talks: [Talk; 2],
}

impl Two {
    fn begin(attach: impl Fn()) -> Self {
        let guests = [("a", 0), ("b", 4)].map(|(name, net)| {
            let netns = guest();
            ip(&format!("link set port name port-{name}"));
            ip(&format!("address flush dev port-{name}"));
            ip(&format!("address add 192.0.2.{}/30 dev port-{name}", net + 2));
            let inside = netns.inside(|| {
                ip("address flush dev guest");
                ip(&format!("address add 192.0.2.{}/30 dev guest", net + 1));
            });
            inside.expect("inside");
            netns
        });
        attach();
        let talks = [Talk::at(&guests[0], "192.0.2.2:0"), Talk::at(&guests[1], "192.0.2.6:0")];
        let mut two = Self { _guests: guests, talks };
        two.go_on();
        two
    }

    fn go_on(&mut self) {
        self.talks.iter_mut().for_each(Talk::goes_on);
    }

    /// Each port translates its connection, and knows how far it is.
    #[track_caller]
    fn are_translated(&mut self) {
        self.go_on();
        for device in ["port-a", "port-b"] {
            let port = Port::open(device).expect("open");
            let before = port.flows().expect("flows")[0].state;
            self.go_on();
            let flows = port.flows().expect("flows");
            assert_eq!(flows.len(), 1, "{device}");
            assert!(flows[0].depends_on_translation(), "{device}");
            let passed = flows[0].state.snd_una.wrapping_sub(before.snd_una);
            assert_eq!((passed, flows[0].state.lags), (4, 0), "{device}");
            assert_eq!(port.counters().expect("counters").get(counters::UNKNOWN), 0, "{device}");
        }
    }
}

fn attach_both() {
    let options = AttachOptions::default();
    Port::attach_pinned(&["port-a", "port-b"], &options).expect("attached");
}

/// Another version takes over until that step.
fn succeed_until(step: Step) {
    Host::make_foreign(true).expect("foreign");
    let cut = Predecessor::succeed_by_steps(|_, _| Ok(()), kill_after(step));
    assert!(cut.is_err_and(|why| why.to_string().contains("be killed")));
}

fn kill_after(step: Step) -> impl Fn(Step) -> Result<()> {
    move |done| if done == step { Err(Error::layout("be killed")) } else { Ok(()) }
}

/// What was another version's is this one's.
fn roll_back() {
    host::say_layout(Path::new(PLACE), sys::LAYOUT_VERSION).expect("ours");
    host::say_layout(Path::new(NEXT), OTHER).expect("another's");
    SharedPolicy::say_layout(sys::LAYOUT_VERSION).expect("ours");
}

fn succeed() -> Vec<Inherited> {
    Predecessor::succeed(|_, _| Ok(())).expect("taken over")
}

#[track_caller]
fn took_over(inherited: &[Inherited]) {
    let many: Vec<_> = inherited.iter().map(|port| (port.connections, port.lost)).collect();
    assert_eq!(many, [(1, 0), (1, 0)]);
    assert_eq!(host_directories(), [PLACE]);
}

fn host_directories() -> Vec<String> {
    let entries = fs::read_dir("/sys/fs/bpf/vcc").expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path().display().to_string());
    let mut paths: Vec<_> = paths.filter(|path| path.contains("/host")).collect();
    paths.sort();
    paths
}

/// How far the maps at a place know the connection of each port: the bytes of its guest that have arrived.
fn known_at(place: &str) -> [u32; 2] {
    let flows = MapHandle::from_pinned_path(format!("{place}/flows")).expect("a map");
    [0, 1].map(|index| flows::read(&flows, index).expect("flows")[0].state.snd_una)
}

/// With the state that their connections have reached meanwhile.
#[test]
fn the_version_before_takes_back_what_had_moved() {
    for moved in [1, 2] {
        on_a_host(|| {
            let mut two = Two::begin(attach_both);
            succeed_until(Step::Moved(moved));
            two.go_on();
            let (stayed, went) = (known_at(PLACE), known_at(NEXT));
            assert_eq!(went[0], stayed[0].wrapping_add(4));
            roll_back();
            took_over(&succeed());
            let latest = [went[0], if moved == 2 { went[1] } else { stayed[1] }];
            assert_eq!(known_at(PLACE), latest);
            two.are_translated();
            assert_eq!(succeed(), []);
        });
    }
}

/// Sequence numbers do not say which of two is the later one when gigabytes lie between.
#[test]
fn however_much_has_passed_while_a_port_had_moved() {
    on_a_host(|| {
        let _two = Two::begin(attach_both);
        succeed_until(Step::Moved(1));
        let flows = MapHandle::from_pinned_path(format!("{NEXT}/flows")).expect("a map");
        let entry = |tag: Vec<u8>| -> (Vec<u8>, sys::vcc_entry) {
            let value = flows.lookup(&tag, MapFlags::ANY).expect("read").expect("the flow");
            (tag, from_bytes(&value).expect("an entry"))
        };
        let first = flows.keys().map(entry).find(|(_, entry)| entry.key.port == 0);
        let (tag, mut entry) = first.expect("a flow of the first port");
        let flow = &mut entry.flow;
        for number in [&mut flow.snd_una, &mut flow.snd_nxt, &mut flow.right_edge] {
            *number = number.wrapping_add(0x9000_0000);
        }
        flow.last_seen_ms = flow.last_seen_ms.wrapping_add(1);
        flows.update(&tag, to_bytes(&entry), MapFlags::ANY).expect("written");
        roll_back();
        took_over(&succeed());
        assert_eq!(known_at(PLACE)[0], entry.flow.snd_una);
    });
}

/// However often a version is killed, and with either version next.
#[test]
fn what_was_begun_goes_on_from_where_it_is() {
    on_a_host(|| {
        let mut two = Two::begin(attach_both);
        succeed_until(Step::Moved(1));
        two.go_on();
        let before = known_at(NEXT);
        // Such as by `vcc upgrade`, where only the daemon has the policy.
        let refused = Predecessor::succeed(|_, ports| {
            Err(Error::UnderPolicy { device: ports[0].device.clone() })
        });
        assert!(refused.is_err());
        two.go_on();
        assert_eq!(known_at(NEXT)[0], before[0].wrapping_add(4));
        let second = Predecessor::succeed_by_steps(|_, _| Ok(()), kill_after(Step::Moved(1)));
        assert!(second.is_err());
        assert_eq!(host_directories(), [PLACE, NEXT, &format!("{NEXT}-2")]);
        two.go_on();
        took_over(&succeed());
        two.are_translated();

        succeed_until(Step::Exchanged);
        assert_eq!(host_directories(), [PLACE, NEXT]);
        two.go_on();
        took_over(&succeed());
        two.are_translated();
        // With the last port, all goes.
        succeed_until(Step::Moved(1));
        roll_back();
        for device in ["port-a", "port-b"] {
            Port::open(device).expect("open").detach().expect("detached");
        }
        assert_eq!(host_directories(), Vec::<String>::new());
    });
}

/// The policy that was in force when another version began stays so.
#[test]
fn connections_stay_under_the_policy_of_the_version_before() {
    on_a_host(|| {
        let text = "[[pools]]\nname = \"p\"\nwindow = \"100K\"\n\
                    [default]\nunderlay = \"cubic\"\npool = \"p\"";
        let policy = Policy::parse(text, "policy.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
        let mut two = Two::begin(|| {
            let shared = SharedPolicy::open().expect("a policy");
            shared.apply(&policy.policy, &[(0, None.into()), (1, None.into())]).expect("applied");
            let host = Host::open().expect("a host");
            for device in ["port-a", "port-b"] {
                let options = AttachOptions::default();
                Port::attach_pinned_under(&host, device, &options, |_| Ok(())).expect("attached");
            }
        });
        succeed_until(Step::Moved(1));
        two.go_on();
        roll_back();
        let inherited = Predecessor::succeed(|_, _| panic!("there is a policy"));
        took_over(&inherited.expect("taken over"));
        two.are_translated();
        let shared = SharedPolicy::find().expect("read").expect("a policy");
        let pool = || shared.pools().expect("pools").remove(0);
        assert!(pool().held_bytes > 0);
        for device in ["port-a", "port-b"] {
            Port::open(device).expect("open").detach().expect("detached");
        }
        assert_eq!((pool().held_bytes, pool().weight), (0, 0));
    });
}

#[test]
fn what_fails_before_a_port_has_moved_leaves_nothing() {
    on_a_host(|| {
        let mut two = Two::begin(attach_both);
        Host::make_foreign(true).expect("foreign");
        let lacking = pins::all().expect("pins")[1].path().join("from_guest_link");
        let aside = lacking.with_file_name("aside");
        fs::rename(&lacking, &aside).expect("renamed");
        assert!(Predecessor::succeed(|_, _| Ok(())).is_err());
        assert_eq!(host_directories(), [PLACE]);
        fs::rename(&aside, &lacking).expect("renamed");
        took_over(&succeed());
        two.are_translated();
    });
}

/// Whenever the process is killed, it takes no new connections.
#[test]
fn a_port_that_drains_goes_on_draining() {
    on_a_host(|| {
        let mut two = Two::begin(attach_both);
        assert_eq!(Port::open("port-a").expect("open").drain().expect("drained"), 1);
        for step in [Step::Moved(1), Step::Exchanged] {
            succeed_until(step);
            two.go_on();
            if step == Step::Exchanged {
                assert!(Port::draining("port-a").expect("read").is_some());
            }
            took_over(&succeed());
            assert!(Port::draining("port-a").expect("read").is_some(), "{step:?}");
            two.are_translated();
        }
        succeed_until(Step::Moved(1));
        roll_back();
        took_over(&succeed());
        assert!(Port::draining("port-a").expect("read").is_some());
        two.are_translated();
    });
}
