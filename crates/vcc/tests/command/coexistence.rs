//! Other programs at a port's device, as the commands report them.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use vcc_testing::{end_chain, eventually, guest, ip, on_a_host, tc};

use crate::daemon::{Place, watching};
use crate::vcc;

#[test]
fn the_doctor_looks_at_a_device() {
    on_a_host(|| {
        let _guest = guest();
        vcc("attach port").well();
        let text = vcc("doctor --device port").well();
        assert!(
            text.starts_with("On port:\n") && text.ends_with("Nothing is in the way.\n"),
            "{text}"
        );
        tc("qdisc add dev port root tbf rate 10mbit burst 10kb latency 10ms");
        let text = vcc("doctor --device port").well();
        assert!(text.ends_with("Problems: 0, warnings: 1.\n"), "{text}");
        assert!(text.contains("root qdisc tbf"), "{text}");

        ip("link add vx0 type vxlan id 5 dev port dstport 4789 remote 192.0.2.9");
        let output = vcc("doctor --device port --seconds 0.1 --json");
        assert_eq!(output.code, 1, "a problem: {}", output.stderr);
        let report: Value = serde_json::from_str(&output.stdout).expect("JSON");
        assert_eq!(report["device"], "port");
        let findings = report["findings"].as_array().expect("an array");
        let severity = |kind: &str| {
            let finding = findings.iter().find(|finding| finding["kind"] == kind);
            finding.unwrap_or_else(|| panic!("{kind} in {report}"))["severity"].clone()
        };
        assert_eq!(
            ["tcx", "qdisc", "encapsulation"].map(severity),
            ["note", "warning", "problem"].map(Value::from)
        );
        for text in ["found", "meaning"] {
            assert!(findings.iter().all(|finding| finding[text].is_string()), "{report}");
        }
        assert!(severity("traffic").is_string());
    });
}

#[test]
fn the_doctor_needs_a_device_that_is_there() {
    on_a_host(|| {
        let complaint = vcc("doctor --device nowhere").complaint(1);
        assert!(complaint.starts_with("no network device `nowhere`"), "{complaint}");
        assert_eq!(vcc("doctor --seconds 1").code, 2, "of which device?");
    });
}

#[test]
fn attaching_warns_of_what_may_be_in_the_way() {
    on_a_host(|| {
        let _guest = guest();
        ip("link add other type veth peer name other-guest");
        tc("qdisc add dev port root tbf rate 10mbit burst 10kb latency 10ms");
        let output = vcc("attach port other");
        assert_eq!((output.code, output.stdout.lines().count()), (0, 2), "{}", output.stderr);
        assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
        assert!(
            output.stderr.starts_with("vcc: warning: port: root qdisc tbf"),
            "{}",
            output.stderr
        );
    });
}

/// A socket whose frames go past the TCX programs of `port`.
fn bypass() -> OwnedFd {
    // SAFETY: the call takes no pointers. Protocol 0: it receives nothing.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) };
    assert!(socket >= 0, "{}", io::Error::last_os_error());
    // SAFETY: the descriptor is new, and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let on: libc::c_int = 1;
    // SAFETY: the kernel reads an integer, which outlives the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_QDISC_BYPASS,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    assert_eq!(status, 0, "{}", io::Error::last_os_error());
    socket
}

fn send(socket: &OwnedFd, frame: &[u8]) {
    // SAFETY: all-zero bytes are a valid sockaddr_ll, and the name ends in NUL.
    let (mut to, ifindex): (libc::sockaddr_ll, _) =
        unsafe { (std::mem::zeroed(), libc::if_nametoindex(c"port".as_ptr())) };
    to.sll_family = libc::AF_PACKET as u16;
    to.sll_ifindex = ifindex as libc::c_int;
    // SAFETY: the kernel reads the frame and the address, which outlive the call.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            frame.as_ptr().cast(),
            frame.len(),
            0,
            (&raw const to).cast(),
            size_of_val(&to) as libc::socklen_t,
        )
    };
    assert_eq!(sent, frame.len() as isize, "{}", io::Error::last_os_error());
}

#[test]
fn a_port_that_sees_nothing_is_a_problem_of_the_daemon() {
    on_a_host(|| {
        let guest = guest();
        // What IPv6 announces by itself vcc does see.
        let without_ipv6 = |device: &str| {
            let path = format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6");
            std::fs::write(&path, "1").unwrap_or_else(|e| panic!("{path}: {e}"));
        };
        without_ipv6("port");
        guest.inside(|| without_ipv6("guest")).expect("inside");
        let place = Place::new("blind", "[[ports]]\ndevice = \"port\"\n[default]\n");
        let daemon = place.run();
        daemon.wait_for_log("1 port under");
        let problem = || place.vcc("status").well().contains("vcc saw none of them");
        assert!(!problem());
        let socket = bypass();
        let frame = [&[2; 12][..], &[0x88, 0xb5], &[0; 46]].concat();
        // The daemon compares every five seconds, and the first time with nothing.
        let deadline = Instant::now() + Duration::from_secs(60);
        while !problem() {
            assert!(Instant::now() < deadline, "the problem is reported");
            (0..50).for_each(|_| send(&socket, &frame));
            thread::sleep(Duration::from_millis(200));
        }
    });
}

/// The kinds of the neighbours of a place's only port that hurt, and what was found.
fn neighbours(place: &Place) -> Vec<(String, String)> {
    let status = place.status();
    let neighbours = status["ports"][0]["neighbours"].as_array().expect("an array");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    neighbours.iter().map(|it| (text(&it["kind"]), text(&it["found"]))).collect()
}

#[test]
fn a_daemon_reports_a_program_in_the_way_until_it_is_gone() {
    on_a_host(|| {
        ip("link set lo up");
        let _guest = guest();
        let place = Place::new("neighbours", "[[ports]]\ndevice = \"port\"\n[default]\n");
        let other = end_chain("port").expect("a program");
        let daemon = place.run_at("127.0.0.1:0");
        let log_line = daemon.wait_for_log("web page at http://");
        let (_, address) = log_line.split_once("http://").expect("an address");
        let address = address.trim_end_matches('/');
        eventually("the program is reported", || !neighbours(&place).is_empty());
        let found = neighbours(&place);
        assert!(found.len() == 1 && found[0].0 == "tcx", "{found:?}");
        assert!(
            found[0].1.contains("ends_chain (ID ") && found[0].1.contains("2 of 2"),
            "{found:?}"
        );
        let text = place.vcc("status").well();
        assert!(
            text.contains("\nwarning: port: TCX ingress, from the guest: ends_chain"),
            "{text}"
        );

        // It may be harmless, so it is no problem.
        assert_eq!(place.status()["problems"], Value::Array(Vec::new()));
        let (status, health) = watching::get(address, "/healthz");
        assert!(status.contains(" 200 "), "{status}: {health}");
        eventually("the page has it", || {
            let (_, snapshot) = watching::get(address, "/api/snapshot.json");
            let snapshot: Value = serde_json::from_str(&snapshot).expect("JSON");
            snapshot["warnings"][0]["about"] == "port"
        });

        drop(other);
        eventually("the program is no longer listed", || neighbours(&place).is_empty());
        daemon.wait_for_log("port: no longer in the way: TCX ingress");

        // Of a queue there is no news, but of what else changes at its device.
        tc("qdisc add dev port root tbf rate 10mbit burst 10kb latency 10ms");
        ip("link set port mtu 1400");
        eventually("the queue is reported", || !neighbours(&place).is_empty());
        assert_eq!(neighbours(&place)[0].0, "qdisc");
    });
}

#[test]
fn a_neighbour_that_hides_segments_is_a_problem_of_the_daemon() {
    on_a_host(|| {
        let _guest = guest();
        ip("link add vx0 type vxlan id 5 dev port dstport 4789 remote 192.0.2.9");
        let place = Place::new("hidden", "[[ports]]\ndevice = \"port\"\n[default]\n");
        let daemon = place.run();
        daemon.wait_for_log("port: packets of vx0 (vxlan) leave by port");
        let output = place.vcc("status").well();
        assert!(output.contains("problem: port: packets of vx0 (vxlan) leave by port"), "{output}");
        assert!(!output.contains("warning: "), "{output}");
        ip("link delete vx0");
        ip("link set port mtu 1400");
        daemon.wait_for_log("port: no longer in the way: packets of vx0");
        assert_eq!(place.status()["problems"], Value::Array(Vec::new()));
    });
}
