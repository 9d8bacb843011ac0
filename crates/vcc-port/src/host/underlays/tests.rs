use std::fs;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use vcc_engine::Slot;
use vcc_testing::on_a_host;

use super::*;

/// The example of docs/congestion-control.md, with a reduction by `part`.
fn gentle(part: u32) -> Object {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/congestion-control.md");
    let page = fs::read_to_string(page).expect("the page");
    let example = page.split("```c\n").nth(1).expect("C").split("```").next().expect("its end");
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("gentle.h");
    fs::write(&source, example.replace("cwnd_segs / 8", &format!("cwnd_segs / {part}")))
        .expect("a file");
    vcc_underlay::build(&source).expect("an object").0
}

fn slots() -> Vec<usize> {
    Underlays::pinned().expect("read").iter().map(|(slot, _)| slot.index()).collect()
}

/// As an upgrade finds what the version before has loaded, whose hooks were given something else.
#[test]
fn an_underlay_of_another_version_is_reported_and_replaced() {
    on_a_host(|| {
        let object = gentle(8);
        assert_eq!(Underlays::load(&object).expect("loaded"), Loading::Loaded);
        let pin = "/sys/fs/bpf/vcc/underlays/0";
        let map = MapHandle::from_pinned_path(pin).expect("a map");
        let mut bytes = object.bytes().to_vec();
        let head = bytes.windows(8).position(|it| it == b"vcc-cc\0\0").expect("its head");
        bytes[head + 8] += 1;
        map.update(&[0; 4], &bytes, MapFlags::ANY).expect("written");

        let [message] = &Underlays::know().expect("read")[..] else { panic!("one is refused") };
        assert!(
            message.starts_with("the underlay gentle was built for another version"),
            "{message}"
        );
        assert!("gentle".parse::<Underlay>().is_err(), "nothing can name it");
        // Another one does not take its place, where connections may still be.
        let other = gentle(4);
        assert_eq!(Underlays::load(&other).expect("loaded"), Loading::Replaced(0));
        assert_eq!(slots(), [1]);
        assert_eq!(Underlays::know().expect("read"), Vec::<String>::new());
        Underlays::unload("gentle", None).expect("unloaded");
        assert_eq!(slots(), Vec::<usize>::new());
    });
}

/// Processes that were killed between the pin and the programs leave them apart.
#[test]
fn what_was_left_half_way_is_finished_by_the_same_command() {
    on_a_host(|| {
        let host = Host::open().expect("a host");
        let in_force = || {
            let Found::Ours(host) = Host::find().expect("found") else { panic!("a host") };
            host.programs.tags().expect("tags")
        };
        let without = in_force();
        let object = gentle(8);
        pin(Slot::from_index(0).expect("a slot"), &object).expect("pinned");
        assert_eq!(Underlays::load(&object).expect("loaded"), Loading::Unchanged);
        let with = in_force();
        assert_ne!(with, without, "it is in force");

        let none = Underlays::pinned().expect("read").without(Slot::from_index(0).expect("a slot"));
        Changed::to(&none).expect("loaded").put_in_force().expect("in force");
        assert_eq!(in_force(), without);
        Underlays::unload("gentle", None).expect("it is still there");
        assert_eq!(slots(), Vec::<usize>::new());
        drop(host);
    });
}

/// A process that was killed while it replaced one leaves both.
#[test]
fn a_replacement_that_was_left_half_way_is_finished() {
    on_a_host(|| {
        let (before, after) = (gentle(8), gentle(4));
        Underlays::load(&before).expect("loaded");
        let slot = Slot::from_index(1).expect("a slot");
        pin(slot, &after).expect("pinned");
        assert_eq!(slots(), [0, 1]);
        // A daemon asks with each policy, and must not hold more each time.
        let name = || slot.underlay().expect("it is known").name().as_ptr();
        Underlays::know().expect("read");
        let known = name();
        Underlays::know().expect("read");
        assert_eq!(name(), known);
        assert_eq!(Underlays::load(&after).expect("loaded"), Loading::Replaced(0));
        assert_eq!(slots(), [1]);
        assert_eq!(Underlays::load(&after).expect("loaded"), Loading::Unchanged);
    });
}
