use vcc_testing::{ip, on_a_host};

use crate::{Said, command, vcc};

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
        assert!(complaint.contains("`vcc detach port` first"), "{complaint}");
        vcc("detach port").well();
        vcc("attach port").well();
    });
}

#[test]
fn a_limit_that_is_reached() {
    on_a_host(|| {
        ip("link add port type veth peer name guest");
        vcc("attach port").well();
        let limited = |arguments: &[&str]| -> Said {
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
        let said: Said = setpriv.args(["attach", "port"]).output().expect("setpriv").into();
        let complaint = said.complaint(1);
        assert!(complaint.contains("needs CAP_BPF and CAP_NET_ADMIN"), "{complaint}");
        assert!(complaint.contains("as root"), "{complaint}");
    });
}
