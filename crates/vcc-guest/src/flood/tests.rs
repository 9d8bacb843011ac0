//! With files in the place of the kernel's, and with BPF in this machine's kernel, under names of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process;

use libbpf_rs::{Link, MapCore, MapHandle};
use tempfile::TempDir;
use vcc_testing::on_a_host;

use super::*;

mod leased;

/// A guest of files, whose kernel has no BTF.
struct Guest {
    flood: Flood,
    directory: TempDir,
}

/// `modprobe` of that guest: the module registers the congestion control.
const MODPROBE: &str = r#"#!/bin/sh
cd "${0%/*}" || exit
[ -e no-module ] && { echo "FATAL: Module $1 not found in directory /lib/modules/5.4.0" >&2; exit 1; }
mkdir "modules/$1"; echo live >"modules/$1/initstate"; echo 0 >"modules/$1/refcnt"
echo reno cubic flood >available
"#;
/// It does not need `modprobe`'s list of modules.
const RMMOD: &str = r#"#!/bin/sh
cd "${0%/*}" || exit
rm -r "modules/$1"; echo reno cubic >available
"#;

impl Guest {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let flood = Flood {
            name: NAME.into(),
            state: path("state"),
            available: path("available"),
            btf: path("no-btf"),
            default: DefaultControl { sysctl: path("default"), remembered: path("state/before") },
            pins: Pins { directory: path("pins"), name: NAME.into() },
            module: Module {
                name: "tcp_flood".into(),
                modules: path("modules"),
                modprobe: path("modprobe"),
                rmmod: path("rmmod"),
            },
        };
        let guest = Self { flood, directory };
        guest.write("available", "reno cubic\n");
        guest.write("default", "cubic\n");
        for (program, text) in [("modprobe", MODPROBE), ("rmmod", RMMOD)] {
            guest.write(program, text);
            let executable = fs::Permissions::from_mode(0o755);
            fs::set_permissions(guest.path(program), executable).expect("executable");
        }
        fs::create_dir(guest.path("modules")).expect("a directory");
        guest
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect(name);
    }

    fn default(&self) -> String {
        self.flood.default.current().expect("a default")
    }
}

fn to(current: &str) -> Restored {
    Restored::To { current: current.into(), is_fallback: false }
}

#[test]
fn the_module_takes_the_place_of_struct_ops() {
    let guest = Guest::new();
    for _ in 0..2 {
        for was_registered in [false, true] {
            let installed = guest.flood.install(Form::Unconditional, false).expect("installed");
            assert_eq!(installed.provider, Provider::Module);
            assert_eq!(installed.was_registered, was_registered);
            assert_eq!(
                (installed.default.as_str(), installed.before.as_deref()),
                ("flood", Some("cubic"))
            );
        }
        let removed = guest.flood.remove().expect("removed");
        assert_eq!(removed.default, to("cubic"));
        assert_eq!(removed.unregistered, Unregistered::Done(Provider::Module));
        let again = guest.flood.remove().expect("nothing to do");
        assert_eq!(again.default, Restored::Untouched { current: "cubic".into() });
        assert_eq!(again.unregistered, Unregistered::WasNot);
    }
}

#[test]
fn without_struct_ops_and_module_nothing_changes() {
    let guest = Guest::new();
    guest.write("no-module", "");
    let error =
        guest.flood.install(Form::Unconditional, false).expect_err("no provider").to_string();
    let parts =
        ["has no BTF", "Module tcp_flood not found", "`dkms install vcc-flood/", "linux-headers-"];
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    assert_eq!(guest.default(), "cubic");
    fs::remove_file(guest.path("modprobe")).expect("removed");
    let error =
        guest.flood.install(Form::Unconditional, false).expect_err("no modprobe").to_string();
    assert!(error.contains("cannot run `") && error.contains("modprobe tcp_flood`"), "{error}");
}

#[test]
fn a_module_in_use_stays_but_is_not_the_default() {
    let guest = Guest::new();
    guest.flood.install(Form::Unconditional, false).expect("installed");
    guest.write("modules/tcp_flood/refcnt", "3\n");
    let removed = guest.flood.remove().expect("the default, at least");
    assert_eq!((removed.default, removed.unregistered), (to("cubic"), Unregistered::InUse(3)));
    assert_eq!(guest.default(), "cubic");
    guest.write("modules/tcp_flood/refcnt", "0\n");
    let removed = guest.flood.remove().expect("removed");
    assert_eq!(removed.unregistered, Unregistered::Done(Provider::Module));
}

#[test]
fn available_alone_changes_no_default_and_gives_one_back() {
    let guest = Guest::new();
    let installed = guest.flood.install(Form::Unconditional, true).expect("installed");
    assert_eq!((installed.default.as_str(), guest.default().as_str()), ("cubic", "cubic"));
    guest.flood.install(Form::Unconditional, false).expect("the default");
    assert_eq!(guest.default(), "flood");
    let installed = guest.flood.install(Form::Unconditional, true).expect("available");
    assert_eq!((installed.default.as_str(), installed.before), ("cubic", None));
    assert_eq!(guest.flood.status().expect("a status").registered, Some("module"));
}

#[test]
fn what_others_have_registered_stays() {
    for (built_in, provider) in [(true, Provider::BuiltIn), (false, Provider::Other)] {
        let guest = Guest::new();
        guest.write("available", "reno cubic flood\n");
        if built_in {
            fs::create_dir(guest.path("modules/tcp_flood")).expect("a directory");
        }
        assert_eq!(
            guest.flood.install(Form::Unconditional, false).expect("the default").provider,
            provider
        );
        let removed = guest.flood.remove().expect("the default");
        assert_eq!(
            (removed.default, removed.unregistered),
            (to("cubic"), Unregistered::NotOurs(provider))
        );
    }
}

#[test]
fn a_status_says_what_is_missing() {
    let guest = Guest::new();
    let status = guest.flood.status().expect("a status");
    assert!(status.lacks.is_some_and(|lacks| lacks.contains("has no BTF")));
    assert_eq!((status.registered, status.pin), (None, None));
    assert_eq!((status.default.as_str(), status.default_before), ("cubic", None));
    assert_ne!(status.connections.is_some(), status.connections_unknown.is_some());
}

/// On a host of its own: what registers it is the kernel, and the default is a file.
fn on_a_kernel(letter: char, work: impl FnOnce(&Guest) + Send) {
    on_a_host(|| {
        let mut guest = Guest::new();
        // The kernel's names are global to the machine.
        let name = format!("flood_{letter}{:x}", process::id() & 0xf_ffff);
        guest.flood.name = name.clone();
        guest.flood.pins = Pins { directory: "/sys/fs/bpf/vcc-guest".into(), name };
        guest.flood.available = kernel::AVAILABLE.into();
        guest.flood.btf = kernel::BTF.into();
        guest.write("no-module", "");
        work(&guest);
        assert!(!guest.flood.is_registered().expect("a list"), "nothing is left");
        assert!(!Path::new("/sys/fs/bpf/vcc-guest").exists(), "no pin is left");
    });
}

#[test]
fn bpf_outlives_what_registered_it_until_it_is_removed() {
    on_a_kernel('a', |guest| {
        let pin = guest.flood.pins.link();
        for was_registered in [false, true] {
            let installed = guest.flood.install(Form::Unconditional, false).expect("installed");
            assert_eq!(installed.provider, Provider::Bpf(pin.clone()));
            assert_eq!(installed.was_registered, was_registered);
            assert_eq!(guest.default(), guest.flood.name);
        }
        let status = guest.flood.status().expect("a status");
        assert_eq!(
            (status.lacks, status.registered, &status.pin),
            (None, Some("bpf"), &Some(pin.clone()))
        );
        let removed = guest.flood.remove().expect("removed");
        assert_eq!(removed.unregistered, Unregistered::Done(Provider::Bpf(pin)));
        assert_eq!((removed.default, guest.default().as_str()), (to("cubic"), "cubic"));
    });
}

#[test]
fn a_pin_without_registration_is_replaced_and_removed() {
    on_a_kernel('b', |guest| {
        let detach = || {
            let link = Link::open(guest.flood.pins.link()).expect("the pin");
            link.detach().expect("detached");
            guest.flood.wait_until_gone().expect("gone");
        };
        guest.flood.install(Form::Unconditional, true).expect("installed");
        detach();
        assert!(!guest.flood.install(Form::Unconditional, true).expect("again").was_registered);
        assert!(guest.flood.is_registered().expect("a list"));
        detach();
        assert_eq!(guest.flood.remove().expect("removed").unregistered, Unregistered::WasNot);
    });
}

#[test]
fn kernels_without_links_have_a_map_instead() {
    on_a_kernel('c', |guest| {
        let Flood { name, pins, .. } = &guest.flood;
        let register = || {
            pins.create_directory().expect("a directory");
            find(NAME)
                .expect("known")
                .register_map_pinned(name, &pins.map(), &[])
                .expect("registered")
        };
        assert!(register());
        assert_eq!(guest.flood.provider().expect("found"), Some(Provider::Bpf(pins.map())));
        let removed = guest.flood.remove().expect("removed");
        assert_eq!(removed.unregistered, Unregistered::Done(Provider::Bpf(pins.map())));

        // Interrupted between the two steps of its removal.
        assert!(register());
        let map = MapHandle::from_pinned_path(pins.map()).expect("the pin");
        map.delete(&0u32.to_ne_bytes()).expect("unregistered");
        drop(map);
        guest.flood.wait_until_gone().expect("gone");
        assert_eq!(guest.flood.remove().expect("removed").unregistered, Unregistered::WasNot);

        // A name that is taken leaves no pin.
        guest.flood.install(Form::Unconditional, true).expect("installed");
        let taken = find(NAME).expect("known").register_map_pinned(name, &pins.map(), &[]);
        assert!(!taken.expect("no error"));
        assert!(!pins.map().exists());
        guest.flood.remove().expect("removed");
    });
}
