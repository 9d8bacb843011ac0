//! Each congestion control on real TCP, over a wire that marks and drops by plan. The kernel's
//! variables are read after every ACK.

mod dctcp;
mod flood;
mod highspeed;
mod illinois;
mod shadow;
mod vegas;
mod wire;

use std::path::Path;

use vcc_lab::congestion_controls::{self, CongestionControls};
use vcc_testing::{can_attach, isolated, skip, tun};

use wire::{Connection, Link, Wire};

/// Runs `test` with a connection over a wire of its own and the two ends' congestion controls.
#[track_caller]
fn with_connection(
    sender: &str,
    receiver: &str,
    link: Link,
    test: impl FnOnce(Wire, Connection) + Send,
) {
    if !can_attach() {
        return;
    }
    if !Path::new(tun::TUN).exists() {
        skip(&format!("no {}", tun::TUN));
        return;
    }
    isolated(|| {
        let controls = CongestionControls::load(congestion_controls::names()).expect("registered");
        let mut wire = Wire::create(&controls, link);
        let connection = wire.connect(sender, receiver);
        test(wire, connection);
    });
}
