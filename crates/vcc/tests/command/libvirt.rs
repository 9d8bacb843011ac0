//! The hook for libvirt, called as libvirt calls it.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use vcc_testing::{Netns, eventually, guest, ip, on_a_host};

use crate::{CommandOutput, vcc};

/// A domain as libvirt writes it: disks have targets too, and not every interface has a tap.
const DOMAIN: &str = "<domain type='kvm' id='7'>
  <name>acme-web</name>
  <devices>
    <disk type='file' device='disk'>
      <source file='/var/lib/libvirt/images/acme-web.qcow2'/>
      <target dev='vda' bus='virtio'/>
    </disk>
    <interface type='bridge'>
      <mac address='52:54:00:aa:bb:01'/>
      <source bridge='br0'/>
      <target dev='tap-acme-1'/>
      <model type='virtio'/>
      <alias name='net0'/>
    </interface>
    <interface type='network'>
      <source network='default' portid='0d0c' bridge='virbr0'/>
      <target dev='vnet3'/>
    </interface>
    <interface type='direct'>
      <source dev='eth0' mode='bridge'/>
      <target dev='macvtap0'/>
    </interface>
    <interface type='bridge'>
      <source bridge='br0'/>
      <target dev='tap-gone'/>
    </interface>
    <interface type='bridge'>
      <source bridge='br0'/>
      <target dev='a;>/tmp/vcc-escaped'/>
    </interface>
    <console type='pty' tty='/dev/pts/3'>
      <target type='serial' port='0'/>
    </console>
  </devices>
</domain>
";

fn hook(operation: &str, options: Option<&str>) -> CommandOutput {
    hook_with(operation, options.map(|options| ("VCC_OPTIONS", options)).as_slice())
}

fn hook_with(operation: &str, variables: &[(&str, &str)]) -> CommandOutput {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let command = Path::new(env!("CARGO_BIN_EXE_vcc")).parent().expect("a directory");
    let path = std::env::var("PATH").expect("PATH");
    let own = variables.iter().find(|(name, _)| *name == "PATH").map_or("", |(_, path)| path);
    let mut hook = Command::new(root.join("packaging/libvirt/qemu"));
    hook.arg("acme-web").args(operation.split(' '));
    hook.env_remove("VCC_OPTIONS").envs(variables.iter().copied());
    hook.env("PATH", format!("{own}:{}:{path}", command.display()));
    let mut child = hook
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the hook");
    // A hook that does not read its input may end before the input is written.
    let _ = child.stdin.take().expect("its stdin").write_all(DOMAIN.as_bytes());
    child.wait_with_output().expect("its end").into()
}

#[test]
fn taps_of_a_domain_that_starts_are_attached() {
    on_a_host(|| {
        for tap in ["tap-acme-1", "vnet3", "macvtap0"] {
            ip(&format!("link add {tap} type veth peer name {tap}-g"));
        }
        // libvirt would take the hook's output as the domain's XML.
        for operation in ["prepare begin -", "start begin -", "migrate begin -", "restore begin -"]
        {
            assert_eq!(hook(operation, None).well(), "", "{operation}");
            assert_eq!(vcc("ports").well(), "vcc is attached nowhere\n", "{operation}");
        }
        // One tap has gone meanwhile: the domain runs all the same.
        assert_eq!(hook("started begin -", None).well(), "");
        let ports = vcc("ports").well();
        for tap in ["tap-acme-1", "vnet3"] {
            assert!(ports.contains(&format!("{tap}: reno-ecn, shadow, ")), "{ports}");
        }
        assert!(!ports.contains("macvtap0:"), "{ports}");
        // libvirt was started anew; all is there already.
        assert_eq!(hook("reconnect begin -", None).well(), "");
        assert_eq!(vcc("ports").well(), ports);
        assert_eq!(hook("stopped end shutdown", None).well(), "");
        assert_eq!(hook("release end -", None).well(), "");

        vcc("detach --all").well();
        assert_eq!(hook("started begin -", Some("--underlay dctcp --police")).well(), "");
        let ports = vcc("ports").well();
        assert!(ports.contains("tap-acme-1: dctcp, enforce"), "{ports}");
    });
}

/// A directory with a `logger` that writes to the file `log`.
fn logger(directory: &Path) {
    let path = directory.join("logger");
    let text = format!("#!/bin/sh\necho \"$*\" >>{}/log\n", directory.display());
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
}

/// A failure of the hook would have libvirt refuse the migration.
#[test]
fn a_domain_comes_whether_or_not_its_coming_can_be_noted() {
    on_a_host(|| {
        let directory = tempfile::tempdir().expect("a directory");
        logger(directory.path());
        let path = directory.path().to_str().expect("a path");
        for (number, options) in ["ro", "nr_inodes=1"].into_iter().enumerate() {
            let run = directory.path().join(number.to_string());
            fs::create_dir(&run).expect("a directory");
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&run);
            assert!(mount.status().expect("mount").success());
            let run = run.to_str().expect("a path");
            let variables = [("PATH", path), ("VCC_RUN", run), ("VCC_HOSTS", "other")];
            for operation in ["migrate begin -", "started begin -"] {
                assert_eq!(hook_with(operation, &variables).well(), "", "{operation}, {options}");
            }
            let log = fs::read_to_string(directory.path().join("log")).expect("a log");
            let says = format!("acme-web: cannot note in {run} that it comes");
            assert!(log.contains(&says), "{says} in {log}");
        }
    });
}

/// Attaching again would end the draining of a port that is to go.
#[test]
fn a_tap_that_is_attached_is_left_as_it_is() {
    on_a_host(|| {
        let directory = tempfile::tempdir().expect("a directory");
        logger(directory.path());
        ip("link add tap-acme-1 type veth peer name guest");
        vcc("attach tap-acme-1 --underlay dctcp").well();
        let variables = [("PATH", directory.path().to_str().expect("a path"))];
        assert_eq!(hook_with("reconnect begin -", &variables).well(), "");
        let log = fs::read_to_string(directory.path().join("log")).expect("a log");
        assert!(log.contains("acme-web: tap-acme-1 is attached already\n"), "{log}");
    });
}

/// A guest behind `tap-acme-1` on another host, with a connection.
fn elsewhere(host: &Netns) -> (Netns, TcpStream, TcpStream) {
    let work = || {
        let guest = guest();
        ip("link set port down");
        ip("link set port name tap-acme-1");
        ip("link set tap-acme-1 up");
        vcc("attach tap-acme-1 --underlay dctcp").well();
        let listener = TcpListener::bind("192.0.2.2:0").expect("a listener");
        let address = listener.local_addr().expect("an address");
        let opened = guest.inside(|| TcpStream::connect(address)).expect("inside").expect("open");
        let (accepted, _) = listener.accept().expect("a connection");
        (guest, opened, accepted)
    };
    host.inside(work).expect("inside")
}

/// An `ssh` whose options are all `-o OPTION`. The host `other` is a network namespace with a boot ID of
/// its own; as of a shell there, the words of the command are joined. `slow` is the same host, after a
/// second; `self` is another name of the caller's. The host `forced` runs another command than it is
/// asked to, the host `dead` never answers, `endless` does not end its answer, and all others refuse. Each call is a line in the file
/// `calls`. `logger` writes to the file `log`.
fn tools(host: &Netns, directory: &Path) {
    let at = directory.display();
    fs::write(directory.join("boot_id"), "5d1e4c1c-0f4b-4a8e-9d6e-2f5f0c9b7a31\n")
        .expect("written");
    let ssh = format!(
        "while [ \"$1\" = -o ]; do shift 2; done\necho \"$1\" >>{at}/calls\n\
         host=$1; shift\n\
         case $host in\n\
         dead) exec sleep 600 ;;\n\
         self) exec sh -c \"$*\" ;;\n\
         forced) echo '{{\"vcc_export\":1}}'; exit ;;\n\
         endless) exec yes ;;\n\
         slow) sleep 1 ;;\n\
         other) ;;\n\
         *) echo \"cannot reach $host\" >&2; exit 255 ;;\n\
         esac\n\
         exec nsenter --net={} unshare --mount sh -c \
         'mount --bind {at}/boot_id /proc/sys/kernel/random/boot_id && eval \"$1\"' sh \"$*\"",
        host.path()
    );
    logger(directory);
    let path = directory.join("ssh");
    fs::write(&path, format!("#!/bin/sh\n{ssh}\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
}

/// Whether a process runs whose arguments are these and whose `PATH` begins with the directory.
fn runs(arguments: &[&str], directory: &Path) -> bool {
    let wanted: Vec<u8> =
        arguments.iter().flat_map(|argument| argument.bytes().chain([0])).collect();
    let path = format!("PATH={}:", directory.display());
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let mut processes = processes.map(|process| process.path());
    processes.any(|process| {
        let read = |name| fs::read(process.join(name)).unwrap_or_default();
        let environment = read("environ");
        let mut variables = environment.split(|byte| *byte == 0);
        read("cmdline") == wanted && variables.any(|one| one.starts_with(path.as_bytes()))
    })
}

#[test]
fn connections_of_a_domain_that_comes_are_followed_until_it_has_come() {
    are_followed_from("dead nowhere other");
}

/// The tap has just been attached here, so this host exports it, too, without any connection.
#[test]
fn the_destination_host_is_no_source_under_any_name() {
    are_followed_from("dead self slow");
}

fn are_followed_from(hosts: &str) {
    on_a_host(|| {
        let other = Netns::create().expect("a namespace");
        let (_guest, _opened, _accepted) = elsewhere(&other);
        let directory = tempfile::tempdir().expect("a directory");
        tools(&other, directory.path());
        let path = directory.path().to_str().expect("a path");
        let run = directory.path().join("run");
        let variables = [
            ("PATH", path),
            ("VCC_HOSTS", hosts),
            ("VCC_RUN", run.to_str().expect("a path")),
            ("VCC_OPTIONS", "--underlay dctcp"),
        ];
        let hook = |operation: &str| assert_eq!(hook_with(operation, &variables).well(), "");
        ip("link add tap-acme-1 type veth peer name guest");
        let flows = || vcc("flows tap-acme-1 --json").well();
        // A domain that starts here comes from nowhere.
        hook("started begin -");
        assert_eq!(flows().trim(), "[]");
        hook("migrate begin -");
        hook("started begin -");
        eventually("the connection is known here", || flows().contains("192.0.2.1"));
        eventually("the dead host is no longer asked", || {
            !runs(&["sleep", "600"], directory.path())
        });
        // The domain leaves the other host, and its tap goes.
        other.inside(|| ip("link delete tap-acme-1")).expect("inside");
        let calls = || fs::read(directory.path().join("calls")).expect("calls").len();
        eventually("the hook has ended", || {
            let before = calls();
            thread::sleep(Duration::from_secs(1));
            calls() == before
        });
        // Both namespaces are one host's, and the first command there reports the deleted device.
        let _ = vcc("ports");
        assert!(flows().contains("192.0.2.1"), "it stays");
    });
}

#[test]
fn a_domain_that_no_host_has_is_reported() {
    on_a_host(|| {
        let other = Netns::create().expect("a namespace");
        let directory = tempfile::tempdir().expect("a directory");
        tools(&other, directory.path());
        let run = directory.path().join("run");
        let variables = [
            ("PATH", directory.path().to_str().expect("a path")),
            ("VCC_HOSTS", "dead nowhere other forced self endless"),
            ("VCC_RUN", run.to_str().expect("a path")),
            ("VCC_ANSWER_S", "10"),
            ("VCC_ANSWER_MIB", "1"),
        ];
        ip("link add tap-acme-1 type veth peer name guest");
        for operation in ["migrate begin -", "started begin -"] {
            assert_eq!(hook_with(operation, &variables).well(), "");
        }
        let log = || fs::read_to_string(directory.path().join("log")).unwrap_or_default();
        eventually("each host's answer is logged", || log().contains("self: "));
        eventually("nothing is left of the search", || {
            fs::read_dir(&run).expect("its directory").next().is_none()
        });
        let log = log();
        for says in [
            "no host of VCC_HOSTS exports tap-acme-1, so its connections are not translated here",
            "'ssh HOST vcc export tap-acme-1'",
            "dead: no whole answer within 10 s",
            "nowhere: cannot reach nowhere",
            "forced: its answer does not begin with its boot ID",
            "self: this is the host that the domain came to",
            "endless: its answer is longer than 1 MiB (VCC_ANSWER_MIB)",
            "other: vcc: no network device `tap-acme-1`",
        ] {
            assert!(log.contains(says), "{says} in {log}");
        }
        assert!(!runs(&["sleep", "600"], directory.path()), "nobody is asked any more");
    });
}
