//! Hosts and guests in network namespaces of their own.

use std::fs;
use std::process::Command;

use vcc_port::Netns;

use crate::can_attach;

/// [`vcc_port::isolated`], which takes root.
pub fn isolated<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    vcc_port::isolated(work).expect("namespaces")
}

/// Runs a test's `work` [`isolated`] if vcc can attach on this machine; otherwise the test is
/// counted as skipped.
#[track_caller]
pub fn on_a_host(work: impl FnOnce() + Send) {
    if can_attach() {
        isolated(work);
    }
}

/// A guest, 192.0.2.1, in a namespace of its own; its port is `port`, 192.0.2.2, in the calling
/// thread's namespace.
pub fn guest() -> Netns {
    let guest = Netns::create().expect("a namespace");
    ip(&format!("link add port type veth peer name guest netns {}", guest.path()));
    ip("address add 192.0.2.2/24 dev port");
    up_without_link_local("port");
    let configured = guest.inside(|| {
        ip("address add 192.0.2.1/24 dev guest");
        up_without_link_local("guest");
    });
    configured.expect("inside");
    guest
}

/// Gives the [`guest`] a second device, whose port is `second`, 198.51.100.2. It reaches 203.0.113.1 by that
/// one alone, from the address of its first.
pub fn add_second_device(guest: &Netns) {
    ip(&format!("link add second type veth peer name guest2 netns {}", guest.path()));
    ip("address add 198.51.100.2/24 dev second");
    up_without_link_local("second");
    accept_detours();
    let configured = guest.inside(|| {
        ip("address add 198.51.100.1/24 dev guest2");
        up_without_link_local("guest2");
        ip("route add 203.0.113.1 via 198.51.100.2 dev guest2 src 192.0.2.1");
        accept_detours();
    });
    configured.expect("inside");
}

/// Sets a device up that sends nothing by itself: without a link-local address it neither looks for duplicates of
/// it nor for routers (RFC 4862, 5.4; RFC 4861, 6.3.7).
pub fn up_without_link_local(device: &str) {
    ip(&format!("link set {device} addrgenmode none"));
    ip(&format!("link set {device} up"));
}

/// Takes packets also by devices that do not lead to their senders.
pub fn accept_detours() {
    for entry in fs::read_dir("/proc/sys/net/ipv4/conf").expect("sysctls") {
        let path = entry.expect("a device").path().join("rp_filter");
        fs::write(path, "0").expect("rp_filter");
    }
}

/// `ip` in the namespace of the calling thread.
pub fn ip(arguments: &str) {
    run("ip", arguments);
}

/// `tc` in the namespace of the calling thread.
pub fn tc(arguments: &str) {
    run("tc", arguments);
}

fn run(program: &str, arguments: &str) {
    let output = Command::new(program)
        .args(arguments.split_whitespace())
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments}: {stderr}");
}
