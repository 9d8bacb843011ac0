//! `vcc guests`: what live guests are taken for.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;
use vcc_port::Netns;
use vcc_testing::{EndOnDrop, guest, ip, on_a_host};

use crate::vcc;
use crate::wire::{connect_to, ends, neighbour};

/// Sets `net.ipv4.tcp_ecn` for new connections.
fn set_ecn(host: &Netns, value: &str) {
    let written = host.inside(|| fs::write("/proc/sys/net/ipv4/tcp_ecn", value));
    written.expect("inside").expect("net.ipv4.tcp_ecn");
}

fn use_congestion_control(stream: &TcpStream, name: &str) {
    // SAFETY: pointer and length are those of the name.
    let status = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_ptr().cast(),
            name.len() as libc::socklen_t,
        )
    };
    assert_eq!(status, 0, "{name}: {}", std::io::Error::last_os_error());
}

/// 20 Mbit/s toward the neighbour, with room for some 40 segments, each of which is one frame.
fn narrow(guest: &Netns) {
    let limit = "qdisc add dev other root tbf rate 20mbit burst 3000 limit 60000";
    let status = Command::new("tc").args(limit.split_whitespace()).status().expect("tc");
    assert!(status.success(), "tc {limit}");
    guest.inside(|| ip("link set guest gso_max_segs 1")).expect("inside");
}

/// Sends until it is asked to stop, and then for as long as the other end reads.
fn pour(mut from: TcpStream, mut to: TcpStream, stop: &AtomicBool) {
    thread::scope(|scope| {
        scope.spawn(move || {
            let chunk = [1; 1 << 16];
            while !stop.load(Ordering::Relaxed) && from.write_all(&chunk).is_ok() {}
        });
        scope.spawn(move || {
            let mut chunk = [0; 1 << 16];
            while to.read(&mut chunk).is_ok_and(|bytes| bytes > 0) {}
        });
    });
}

#[test]
fn live_guests_are_named_or_unknown() {
    on_a_host(|| {
        let guest = guest();
        let other = neighbour();
        vcc("attach port --mode shadow").well();
        narrow(&guest);
        // The neighbour declines ECN, then it takes it.
        set_ecn(&guest, "1");
        let refused = connect_to(&guest, &other, "192.0.2.3:0");
        set_ecn(&other, "2");
        let classic = connect_to(&guest, &other, "192.0.2.3:0");
        set_ecn(&guest, "0");
        let without = connect_to(&guest, &other, "192.0.2.3:0");
        use_congestion_control(&refused.0, "cubic");
        use_congestion_control(&classic.0, "reno");
        let named = |(here, _): &(TcpStream, TcpStream)| ends(here)[0].clone();
        let expected = [
            (named(&refused), "refused", "cubic-like"),
            (named(&classic), "classic", "reno-like"),
            (named(&without), "none", "unknown"),
        ];
        let stop = AtomicBool::new(false);
        let (json, table) = thread::scope(|scope| {
            let _end = EndOnDrop(&stop);
            for (here, there) in [refused, classic] {
                scope.spawn(|| pour(here, there, &stop));
            }
            let json = vcc("guests port --seconds 12 --json");
            let table = vcc("guests --seconds 0.1");
            (json.well(), table.well())
        });
        let guests: Vec<Value> = serde_json::from_str(&json).expect("an array");
        let [seen] = &guests[..] else { panic!("{json}") };
        assert_eq!((&seen["guest"], &seen["connections"]), (&"192.0.2.1".into(), &3.into()));
        assert_eq!(seen["ecn"], serde_json::json!(["none", "refused", "classic"]));
        assert_eq!(seen["translate"], "yes", "{json}");
        let flows = seen["flows"].as_array().expect("an array");
        for (end, ecn, overlay) in &expected {
            let flow = flows.iter().find(|flow| flow["guest"] == end.as_str()).expect("the flow");
            assert_eq!(flow["ecn"], *ecn, "{json}");
            let guessed = flow["overlay"].as_str().expect("a class");
            assert!([*overlay, "unknown"].contains(&guessed), "{overlay}: {json}");
            let confidence = flow["confidence"].as_f64().expect("a number");
            assert_eq!(confidence > 0.0, guessed != "unknown", "{json}");
        }
        assert!(table.starts_with("PORT") && table.contains("none,refused,classic"), "{table}");
        let complaint = vcc("guests --seconds 0").complaint(2);
        assert!(complaint.contains("a number of seconds"), "{complaint}");
    });
}
