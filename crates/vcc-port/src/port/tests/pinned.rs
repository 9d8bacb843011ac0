use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use super::*;
use crate::{Governor, Netns, bpffs};

const PINS: &str = "/sys/fs/bpf/vcc";

fn attach_and_pin(device: &str) {
    let mut port = Port::attach(device, &AttachOptions::default()).expect("an attachment");
    port.pin().expect("pinned");
}

fn pin_directories() -> Vec<String> {
    let entries = fs::read_dir(PINS).expect("a directory");
    entries.map(|entry| entry.expect("an entry").path().display().to_string()).collect()
}

#[test]
fn an_attachment_outlives_its_process() {
    on_a_host(|| {
        veth();
        assert!(!bpffs::is_mounted());
        attach_and_pin(PORT);
        assert_eq!(program_ids(PORT).len(), 2);

        let listed = Port::list().expect("a list");
        assert_eq!(listed.iter().map(Port::device).collect::<Vec<_>>(), [PORT]);
        let port = Port::open(PORT).expect("open");
        assert!(port.flows().expect("flows").is_empty());
        let objects = Objects::of(&port);
        drop(listed);

        port.detach().expect("detached");
        assert!(program_ids(PORT).is_empty());
        assert_eq!(pin_directories(), Vec::<String>::new());
        eventually("programs and maps gone", || objects.all_gone());
        let said = refused(Port::open(PORT));
        assert!(said.starts_with("vcc is not attached to `port`"), "{said}");
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
            let said = refused(Port::open(PORT));
            assert!(said.starts_with("vcc is not attached to `port`"), "{said}");
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
            let said = [
                Port::attach(PORT, &AttachOptions::default()).and_then(|mut port| port.pin()).err(),
                Port::list().err(),
                Port::sweep().err(),
                SharedPolicy::find().err(),
                SharedPolicy::open().err(),
                Governor::become_it().err(),
            ];
            for said in said {
                let said = said.expect("refused").to_string();
                assert!(said.contains("/sys/fs/bpf/vcc") && said.contains(why), "{said}");
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

#[test]
fn what_was_pinned_by_half_is_swept_up() {
    on_a_host(|| {
        veth();
        attach_and_pin(PORT);
        let [directory] = &pin_directories()[..] else { panic!("one directory") };
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
        let [directory] = &pin_directories()[..] else { panic!("one directory") };
        let lacking = format!("{directory}/traced");
        fs::remove_file(&lacking).expect("removed");
        refuses_all_but_detaching();

        attach_and_pin(PORT);
        let mut of_other_size = datapath().maps.params;
        fs::remove_file(format!("{directory}/traced")).expect("removed");
        of_other_size.pin(&lacking).expect("pinned");
        refuses_all_but_detaching();
    });
}

fn refuses_all_but_detaching() {
    assert_eq!(Port::sweep().expect("swept"), Vec::<String>::new());
    let port = Port::open(PORT).expect("open");
    for error in [port.flows().err(), port.counters().err(), port.trace(None).err()] {
        let said = error.expect("a refusal").to_string();
        assert!(said.contains("attached to `port` by another version"), "{said}");
        assert!(said.contains("`vcc detach --now port`"), "{said}");
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
        let mut port = attach();
        let mut other = Port::attach("guest", &AttachOptions::default()).expect("an attachment");
        other.pin().expect("pinned");
        // The kernel refuses a second name for what is pinned already.
        std::mem::swap(&mut port.links, &mut other.links);
        assert!(port.pin().is_err());
        assert_eq!(pin_directories().len(), 1);
    });
}
