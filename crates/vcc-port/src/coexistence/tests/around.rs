//! Devices around the port: masters, tunnels, and what lies on top.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use vcc_policy::TunnelKind;

use super::*;

/// Whether the kernel makes a device of this kind; if not, the test is counted as skipped.
#[track_caller]
fn can_make(device: &str) -> bool {
    let words = format!("link add {device}");
    let status = Command::new("ip").args(words.split_whitespace()).output().expect("ip").status;
    if !status.success() {
        skip(&format!("the kernel refuses `ip {words}`"));
    }
    status.success()
}

/// Tables of the kernel name it along with all others.
#[test]
fn a_device_whose_name_is_not_utf_8_is_no_matter_of_others() {
    on_a_host(|| {
        let _guest = guest();
        let name = OsStr::from_bytes(b"other\xff");
        let ip_link = |before: &[&str], after: &[&str]| {
            let mut ip = Command::new("ip");
            let status = ip.arg("link").args(before).arg(name).args(after).status();
            assert!(status.expect("ip").success(), "{before:?} {after:?}");
        };
        ip_link(&["add"], &["type", "veth", "peer", "name", "its-peer"]);
        ip_link(&["set"], &["up"]);
        ip("link set its-peer up");
        let table = || std::fs::read("/proc/thread-self/net/ipv6_route").expect("routes");
        eventually("it has a route", || table().windows(6).any(|it| it == b"other\xff"));
        let findings = look(PORT);
        assert!(findings.iter().all(|finding| finding.kind != "direction"), "{findings:#?}");
    });
}

#[test]
fn a_port_of_a_bridge() {
    on_a_host(|| {
        let _guest = guest();
        ip("link add br0 type bridge");
        ip("link set port master br0");
        assert_eq!(
            only(&look(PORT), "bridge"),
            (Severity::Note, "port is a port of the bridge br0")
        );
        assert_eq!(only(&look("br0"), "bridge").0, Severity::Warning);
    });
}

#[test]
fn a_port_of_a_bridge_that_filters_vlans() {
    on_a_host(|| {
        let _guest = guest();
        if !can_make("br0 type bridge vlan_filtering 1") {
            return;
        }
        ip("link set port master br0");
        let findings = look(PORT);
        assert!(only(&findings, "bridge").1.ends_with("which filters VLANs"), "{findings:#?}");
    });
}

#[test]
fn a_member_of_a_vrf() {
    on_a_host(|| {
        let _guest = guest();
        if !can_make("red type vrf table 10") {
            return;
        }
        ip("link set port master red");
        assert_eq!(only(&look(PORT), "vrf"), (Severity::Note, "port belongs to the VRF red"));
    });
}

#[test]
fn a_device_under_a_macvlan() {
    on_a_host(|| {
        let _guest = guest();
        ip("link add mv0 link port type macvlan");
        let found = "on top of port: mv0 (macvlan)";
        assert_eq!(only(&look(PORT), "macvlan"), (Severity::Warning, found));
        assert_eq!(only(&look("mv0"), "direction").0, Severity::Warning);
    });
}

#[test]
fn tunnels_and_the_device_that_they_leave_by() {
    on_a_host(|| {
        let _guest = guest();
        ip("link add vx0 type vxlan id 5 dev port dstport 4789 remote 192.0.2.9");
        assert_eq!(
            only(&look(PORT), "encapsulation"),
            (Severity::Problem, "packets of vx0 (vxlan) leave by port")
        );
        assert_eq!(
            only(&look("vx0"), "tunnel"),
            (Severity::Warning, "vx0 is a tunnel (vxlan to 192.0.2.9)")
        );
    });
}

#[test]
fn a_port_that_looks_into_tunnels_sees_what_they_carry() {
    on_a_host(|| {
        let _guest = guest();
        ip("link add vx0 type vxlan id 5 dev port dstport 4789 remote 192.0.2.9");
        let inside = TunnelKind::named("vxlan").into_iter().collect();
        let options = AttachOptions { inside, ..AttachOptions::default() };
        let mut ports = Port::attach_pinned(&[PORT], &options).expect("attached");
        let port = ports.pop().expect("a port");
        let found = "packets of vx0 (vxlan) leave by port";
        assert_eq!(only(&look(PORT), "encapsulation"), (Severity::Note, found));
        port.set_inside(TunnelKind::named("gre").into_iter().collect()).expect("set");
        assert_eq!(only(&look(PORT), "encapsulation"), (Severity::Problem, found));
        port.detach().expect("detached");
    });
}

#[test]
fn a_tunnel_at_a_udp_port_that_the_datapath_does_not_know_is_never_looked_into() {
    on_a_host(|| {
        let _guest = guest();
        ip("link add vx0 type vxlan id 5 dev port dstport 8472 remote 192.0.2.9");
        ip("link add vx1 type vxlan id 6 dev port dstport 8473 remote 192.0.2.9");
        let other = (Severity::Problem, "packets of vx1 (vxlan to UDP port 8473) leave by port");
        let known = "packets of vx0 (vxlan) leave by port";
        let found = of_kind(&look(PORT), "encapsulation").len();
        assert_eq!(found, 2, "one more, which the port might look into");
        let inside = TunnelKind::named("vxlan").into_iter().collect();
        let options = AttachOptions { inside, ..AttachOptions::default() };
        let mut ports = Port::attach_pinned(&[PORT], &options).expect("attached");
        let port = ports.pop().expect("a port");
        let findings = look(PORT);
        assert_eq!(of_kind(&findings, "encapsulation"), [(Severity::Note, known), other]);
        let of_other = findings.iter().find(|finding| finding.found == other.1).expect("one");
        assert!(
            of_other.meaning.contains("vxlan by 4789 or 8472, geneve by 6081"),
            "{of_other:#?}"
        );
        let remedy = of_other.remedy.as_deref().expect("a remedy");
        assert!(remedy.starts_with("let both ends of the tunnel use a port that vcc knows"));
        port.detach().expect("detached");
    });
}

#[test]
fn a_tunnel_that_is_bound_to_no_device_leaves_by_the_route() {
    on_a_host(|| {
        let _guest = guest();
        ip("link add vx0 type vxlan id 5 dstport 4789 remote 192.0.2.9");
        ip("link add vx1 type vxlan id 6 dstport 4789 remote 198.51.100.9");
        ip("link add vx2 type vxlan id 7 dstport 4789");
        let findings = look(PORT);
        let found = only(&findings, "encapsulation").1;
        assert_eq!(found, "packets of vx0 (vxlan) leave by port", "vx1 has no route, vx2 no end");
    });
}

#[test]
fn a_geneve_tunnel() {
    on_a_host(|| {
        if can_make("gnv0 type geneve id 5 remote 192.0.2.9") {
            assert_eq!(only(&look("gnv0"), "tunnel").1, "gnv0 is a tunnel (geneve to 192.0.2.9)");
        }
    });
}

#[test]
fn the_guests_own_end_has_the_default_route() {
    on_a_host(|| {
        let guest = guest();
        let inside = |work: fn()| guest.inside(work).expect("inside");
        inside(|| assert!(of_kind(&look("guest"), "direction").is_empty()));
        inside(|| ip("route add default via 192.0.2.2"));
        inside(|| {
            let findings = look("guest");
            assert_eq!(only(&findings, "direction").0, Severity::Warning, "{findings:#?}");
        });
        inside(|| ip("route del default"));
        inside(|| ip("-6 route add default dev guest"));
        inside(|| assert_eq!(only(&look("guest"), "direction").0, Severity::Warning));
        assert!(of_kind(&look(PORT), "direction").is_empty());
    });
}

#[test]
fn a_device_that_is_not_ethernet() {
    on_a_host(|| {
        assert_eq!(only(&look("lo"), "link-layer").0, Severity::Problem);
    });
}
