//! Hosts and guests in network namespaces of their own.

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
    ip("link set port up");
    let configured = guest.inside(|| {
        ip("address add 192.0.2.1/24 dev guest");
        ip("link set guest up");
    });
    configured.expect("inside");
    guest
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
