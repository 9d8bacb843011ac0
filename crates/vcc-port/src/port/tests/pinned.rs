use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use libbpf_rs::MapCore;

use super::*;
use crate::{Governor, Netns, bpffs, maps};

const PINS: &str = "/sys/fs/bpf/vcc";

fn attach_and_pin(device: &str) {
    attach_pinned(device, &AttachOptions::default()).expect("an attachment");
}

fn pin_directories() -> Vec<String> {
    let entries = fs::read_dir(PINS).expect("a directory");
    entries.map(|entry| entry.expect("an entry").path().display().to_string()).collect()
}

/// Without those of the host and of its policy.
fn port_directories() -> Vec<String> {
    pin_directories().into_iter().filter(|path| path.contains('@')).collect()
}

#[test]
fn an_attachment_outlives_its_process() {
    on_a_host(|| {
        veth();
        attach_and_pin(PORT);
        assert_eq!(program_ids(PORT).len(), 2);

        let listed = Port::list().expect("a list");
        assert_eq!(listed.iter().map(Port::device).collect::<Vec<_>>(), [PORT]);
        let port = Port::open(PORT).expect("open");
        assert!(port.flows().expect("flows").is_empty());
        let objects = Objects::from_port(&port);
        drop(listed);

        port.detach().expect("detached");
        assert!(program_ids(PORT).is_empty());
        assert_eq!(pin_directories(), Vec::<String>::new());
        eventually("programs and maps gone", || objects.all_gone());
        let message = refused(Port::open(PORT));
        assert!(message.starts_with("vcc is not attached to `port`"), "{message}");
    });
}

#[test]
fn names_with_dots_and_new_names() {
    on_a_host(|| {
        ip("link add eth0.5 type veth peer name guest");
        attach_and_pin("eth0.5");
        assert_eq!(Port::open("eth0.5").expect("open").device(), "eth0.5");
        ip("link set eth0.5 name tap7");
        assert_eq!(Port::open("tap7").expect("open").device(), "tap7");
        Port::open("tap7").expect("open").detach().expect("detached");
        assert_eq!(pin_directories(), Vec::<String>::new());
    });
}

#[test]
fn the_same_name_in_another_namespace_is_another_port() {
    on_a_host(|| {
        veth();
        attach_and_pin(PORT);
        let other = Netns::create().expect("a namespace");
        let in_other = other.inside(|| {
            veth();
            let message = refused(Port::open(PORT));
            assert!(message.starts_with("vcc is not attached to `port`"), "{message}");
            attach_and_pin(PORT);
            assert_eq!(Port::list().expect("a list").len(), 2);
        });
        in_other.expect("inside");
    });
}

#[test]
fn what_a_gone_device_leaves_is_swept_up() {
    on_a_host(|| {
        veth();
        attach_and_pin(PORT);
        assert_eq!(Port::sweep().expect("swept"), Vec::<String>::new());
        ip("link delete port");
        assert_eq!(Port::sweep().expect("swept"), [PORT]);
        assert_eq!(pin_directories(), Vec::<String>::new());
    });
}

#[test]
fn what_others_may_have_pinned_is_not_used() {
    on_a_host(|| {
        veth();
        bpffs::require().expect("mounted");
        let all_refuse = |why: &str| {
            let message = [
                attach_pinned(PORT, &AttachOptions::default()).err(),
                Port::list().err(),
                Port::sweep().err(),
                SharedPolicy::find().err(),
                SharedPolicy::open().err(),
                Governor::become_it().err(),
            ];
            for message in message {
                let message = message.expect("refused").to_string();
                assert!(message.contains("/sys/fs/bpf/vcc") && message.contains(why), "{message}");
            }
        };
        fs::create_dir("/sys/fs/bpf/elsewhere").expect("a directory");
        symlink("/sys/fs/bpf/elsewhere", PINS).expect("a link");
        all_refuse("it is a symbolic link");
        assert_eq!(fs::read_dir("/sys/fs/bpf/elsewhere").expect("a directory").count(), 0);
        fs::remove_file(PINS).expect("removed");
        fs::create_dir(PINS).expect("a directory");
        chown(PINS, Some(12_345), None).expect("given away");
        all_refuse("it belongs to user 12345");
        chown(PINS, Some(0), None).expect("taken back");
        fs::set_permissions(PINS, Permissions::from_mode(0o1777)).expect("open to all");
        all_refuse("its mode 1777 lets other users write to it");
        fs::set_permissions(PINS, Permissions::from_mode(0o755)).expect("ours");
        attach_and_pin(PORT);
    });
}

#[test]
fn who_detaches_later_leaves_what_is_attached_since() {
    on_a_host(|| {
        veth();
        attach_and_pin(PORT);
        let opened = || Port::open(PORT).expect("open");
        let (first, second, third) = (opened(), opened(), opened());
        first.detach().expect("detached");
        second.detach().expect("there is nothing to do");
        attach_and_pin(PORT);
        third.detach().expect("there is nothing to do");
        assert_eq!(Port::list().expect("a list").len(), 1);
        assert_eq!(program_ids(PORT).len(), 2);
        opened().detach().expect("detached");
        assert_eq!(pin_directories(), Vec::<String>::new());
    });
}

/// The next port gets the index of one that is detached.
#[test]
fn who_has_a_port_that_was_detached_changes_no_other() {
    on_a_host(|| {
        veth();
        // Its host stays.
        ip("link add remaining type veth peer name its-guest");
        attach_and_pin("remaining");
        let stale = pinned();
        let trace = stale.trace(None).expect("a trace");
        Port::open(PORT).expect("open").detach().expect("detached");
        let other = attach_pinned("guest", &AttachOptions::default()).expect("an attachment");
        assert_eq!(other.seat().expect("a seat").index, stale.seat().expect("a seat").index);
        let _trace = other.trace(None).expect("another trace");
        for refused in
            [stale.drain().err(), stale.forget_flows().err(), stale.set_mode(Mode::Drain).err()]
        {
            let message = refused.expect("a refusal").to_string();
            assert!(message.starts_with("vcc is not attached to `port`"), "{message}");
        }
        drop((trace, stale));
        let params = other.params().expect("parameters").0;
        assert_eq!((params.mode, params.trace), (Mode::Enforce.number(), 1));
        let traces = &other.maps().expect("maps").traces;
        let index = other.seat().expect("a seat").index;
        let ring = traces.lookup(&index.to_ne_bytes(), libbpf_rs::MapFlags::ANY);
        assert!(ring.expect("read").is_some(), "the other's ring is there");
    });
}

/// As a process that is killed in an upgrade may leave them.
#[test]
fn programs_that_are_missing_are_reported_as_long_as_a_port_needs_them() {
    on_a_host(|| {
        veth();
        attach_and_pin(PORT);
        fs::remove_file(format!("{PINS}/host/sweep")).expect("removed");
        let message = refused(attach_pinned("guest", &AttachOptions::default()));
        assert!(message.contains("`vcc detach --now --all`"), "{message}");
        Port::open(PORT).expect("open").detach().expect("detached");
        attach_and_pin("guest");
    });
}

#[test]
fn what_was_pinned_by_half_is_swept_up() {
    on_a_host(|| {
        veth();
        attach_and_pin(PORT);
        let [directory] = &port_directories()[..] else { panic!("one directory") };
        fs::remove_file(format!("{directory}/to_guest_link")).expect("removed");
        assert_eq!(Port::sweep().expect("swept"), [PORT]);
        eventually("the programs are off", || program_ids(PORT).is_empty());
    });
}

#[test]
fn what_another_version_pinned_is_left_alone_until_it_is_detached() {
    on_a_host(|| {
        veth();
        attach_and_pin(PORT);
        let lacking = format!("{PINS}/host/usage");
        fs::remove_file(&lacking).expect("removed");
        refuses_all_but_detaching();

        attach_and_pin(PORT);
        let mut of_other_size = maps::keep(&datapath().maps().ports).expect("a map");
        fs::remove_file(&lacking).expect("removed");
        of_other_size.pin(&lacking).expect("pinned");
        refuses_all_but_detaching();

        // Such as those whose ports had maps of their own.
        let port = pinned();
        let [directory] = &port_directories()[..] else { panic!("one directory") };
        let (of_before, _) = directory.rsplit_once('-').expect("an index");
        fs::rename(directory, of_before).expect("renamed");
        drop(port);
        refuses_all_but_detaching();
    });
}

fn refuses_all_but_detaching() {
    assert_eq!(Port::sweep().expect("swept"), Vec::<String>::new());
    let port = Port::open(PORT).expect("open");
    for error in [port.flows().err(), port.counters().err(), port.trace(None).err()] {
        let message = error.expect("a refusal").to_string();
        assert!(message.contains("attached to `port` by another version"), "{message}");
        assert!(message.contains("`vcc detach --now port`"), "{message}");
    }
    assert_eq!(program_ids(PORT).len(), 2);
    port.detach().expect("detached");
    assert!(program_ids(PORT).is_empty());
    assert_eq!(pin_directories(), Vec::<String>::new());
}

#[test]
fn a_failed_pinning_leaves_nothing_behind() {
    on_a_host(|| {
        veth();
        attach_and_pin(PORT);
        let [directory] = &port_directories()[..] else { panic!("one directory") };
        let devices = ["guest", "nowhere0"];
        let message = Port::attach_pinned(&devices, &AttachOptions::default()).err();
        let message = message.expect("a refusal").to_string();
        assert!(message.contains("no network device `nowhere0`"), "{message}");
        assert_eq!(port_directories(), [directory.as_str()]);
        assert!(program_ids("guest").is_empty());
    });
}
