use std::fs;
use std::process::Command;

use vcc_testing::{ip, on_a_host};

use crate::{CommandOutput, command, vcc};

/// `ip netns exec` gives its command a mount namespace: what is pinned there ends with it.
#[test]
fn what_would_end_with_its_command_is_refused_with_what_to_type() {
    on_a_host(|| {
        let run = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert!(Command::new(words[0]).args(&words[1..]).status().expect("run").success());
        };
        // For the names of network namespaces.
        run("mount -t tmpfs tmpfs /run");
        ip("netns add inner");
        ip("link add port netns inner type veth peer name guest");
        let inside = |prefix: &str, line: &str| -> CommandOutput {
            let mut words = prefix.split_whitespace();
            let mut command = Command::new(words.next().expect("a command"));
            command.args(words).arg(env!("CARGO_BIN_EXE_vcc")).args(line.split_whitespace());
            command.env("RUNTIME_DIRECTORY", "/run/vcc");
            command.output().expect("run").into()
        };
        let passing = "ip netns exec inner";
        fs::write("/run/policy", "[[ports]]\ndevice = \"port\"\n").expect("written");
        let daemon = "run --config /run/policy --listen off";
        for line in ["attach port", "ports", "flows port", "detach port", "upgrade", daemon] {
            let complaint = inside(passing, line).complaint(1);
            assert!(
                complaint.contains("`nsenter --net=/run/netns/inner vcc ...`"),
                "{line}: {complaint}"
            );
        }
        let lasting = "nsenter --net=/run/netns/inner";
        inside(lasting, "attach port --underlay dctcp").well();
        assert!(inside(lasting, "ports").well().starts_with("port: dctcp, enforce"));
        inside(lasting, "detach port").well();
        // Who mounts it there wants it so.
        fs::write("/run/mounted", "mount -t bpf bpf /sys/fs/bpf && exec \"$@\"").expect("written");
        inside("ip netns exec inner sh /run/mounted", "attach port --underlay dctcp").well();
    });
}

#[test]
fn no_such_device() {
    on_a_host(|| {
        let complaint = vcc("attach nowhere0").complaint(1);
        assert!(complaint.starts_with("no network device `nowhere0`"), "{complaint}");
        let complaint = vcc("detach nowhere0").complaint(1);
        assert!(complaint.starts_with("no network device `nowhere0`"), "{complaint}");
    });
}

#[test]
fn all_devices_or_none() {
    on_a_host(|| {
        ip("link add port type veth peer name guest");
        vcc("attach port nowhere0").complaint(1);
        assert_eq!(vcc("ports").well(), "vcc is attached nowhere\n");
        assert_eq!(vcc("attach port guest").well().lines().count(), 2);
        assert_eq!(vcc("detach --all").well().lines().count(), 2);
    });
}

#[test]
fn already_attached() {
    on_a_host(|| {
        ip("link add port type veth peer name guest");
        vcc("attach port").well();
        let complaint = vcc("attach port").complaint(1);
        assert!(complaint.contains("`vcc detach port` ends it"), "{complaint}");
        vcc("detach port").well();
        vcc("attach port").well();
    });
}

#[test]
fn a_limit_that_is_reached() {
    on_a_host(|| {
        ip("link add port type veth peer name guest");
        vcc("attach port").well();
        let limited = |arguments: &[&str]| -> CommandOutput {
            let mut prlimit = std::process::Command::new("prlimit");
            prlimit.arg("--nofile=16").arg(command().get_program()).args(arguments);
            prlimit.output().expect("prlimit").into()
        };
        let complaint = limited(&["attach", "guest"]).complaint(1);
        assert!(complaint.contains("may have 16 open: raise LimitNOFILE="), "{complaint}");
        let lacking = limited(&["doctor"]);
        assert_eq!(lacking.code, 1, "{}", lacking.stdout);
        assert!(lacking.stdout.contains("\nvcc cannot attach: "), "{}", lacking.stdout);
        assert!(lacking.stdout.contains("only 16 files open"), "{}", lacking.stdout);
        assert_eq!(vcc("ports").well().lines().count(), 1, "the port that was there stays");
    });
}

#[test]
fn without_privilege() {
    on_a_host(|| {
        ip("link add port type veth peer name guest");
        let mut setpriv = std::process::Command::new("setpriv");
        setpriv.arg("--bounding-set=-all").arg(command().get_program());
        let printed: CommandOutput =
            setpriv.args(["attach", "port"]).output().expect("setpriv").into();
        let complaint = printed.complaint(1);
        assert!(complaint.contains("needs CAP_BPF and CAP_NET_ADMIN"), "{complaint}");
        assert!(complaint.contains("as root"), "{complaint}");
    });
}
