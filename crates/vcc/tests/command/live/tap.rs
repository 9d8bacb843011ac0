//! The host's side of a virtual machine's card.

use std::io::ErrorKind;

use vcc_testing::{ip, on_a_host};
use vcc_vhost::{HEADER_BYTES, Tap, Wire};

const PLAIN: [u8; HEADER_BYTES] = [0; HEADER_BYTES];

/// A super-segment whose checksum is beyond its end.
const WRONG: [u8; HEADER_BYTES] = [1, 1, 0, 0, 100, 0, 255, 255, 0, 0, 0, 0];

#[test]
fn a_tap_that_is_down_is_no_wrong_frame() {
    on_a_host(|| {
        ip("tuntap add dev tap0 mode tap");
        let mut tap = Tap::open("tap0").expect("a tap");
        let down = tap.send(&PLAIN, &[0; 60]).expect_err("it is down");
        assert_eq!(down.kind(), ErrorKind::NetworkDown);
        ip("link set tap0 up");
        let wrong = tap.send(&WRONG, &[0; 60]).expect_err("a wrong header");
        assert_eq!(wrong.kind(), ErrorKind::InvalidInput);
        tap.send(&PLAIN, &[0; 60]).expect("sent");
    });
}

#[test]
fn a_tap_that_was_deleted_is_no_wire_any_more() {
    on_a_host(|| {
        ip("tuntap add dev tap0 mode tap");
        let mut tap = Tap::open("tap0").expect("a tap");
        let receive = |tap: &mut Tap| tap.receive(&mut [0; 2048]).expect_err("no frame").kind();
        assert_eq!(receive(&mut tap), ErrorKind::WouldBlock);
        ip("link delete tap0");
        ip("tuntap add dev tap0 mode tap");
        assert_eq!(receive(&mut tap), ErrorKind::NotConnected);
        let sent = tap.send(&PLAIN, &[0; 60]).expect_err("no tap");
        assert_eq!(sent.kind(), ErrorKind::NotConnected);
    });
}
