//! Snoop: a peer that waits for no turn of the guest.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;

use vcc_testing::eventually;

use super::vm::Vm;
use super::{Domain, from_guest, on_a_host_with_a_tap, to_guest, vhost_user};
use super::{TRANSFER_BYTES, begin_to_guest, end_to_guest, noise};

/// Sent before the guest stops, so that its window is large, and while it is stopped.
const BEFORE_BYTES: usize = 3_000_000;
const STOPPED_BYTES: usize = 100_000;

fn is_acknowledged(stream: &TcpStream) -> bool {
    let mut left_bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ, which has this name too, writes an int.
    let status = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &mut left_bytes) };
    assert_eq!(status, 0, "an open socket");
    left_bytes == 0
}

/// Returns when the guest has read what lies in its ring by now, behind which the SYN lies: what is
/// acknowledged has perhaps not been read.
fn let_it_read_its_ring() {
    let error = TcpStream::connect("192.0.2.1:9").expect_err("a port that nobody listens at");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

/// The guest receives noise. A part of it is acknowledged while the guest cannot do so, and then
/// comes `meanwhile`.
fn to_stopped_guest(vm: &mut Vm, meanwhile: &mut dyn FnMut()) {
    let noise = noise();
    let mut stream = begin_to_guest(vm);
    stream.write_all(&noise[..BEFORE_BYTES]).expect("the first part");
    eventually("the first part is acknowledged", || is_acknowledged(&stream));
    let_it_read_its_ring();
    vm.stop();
    let stopped_until = BEFORE_BYTES + STOPPED_BYTES;
    stream.write_all(&noise[BEFORE_BYTES..stopped_until]).expect("the second part");
    eventually("the second part is acknowledged", || is_acknowledged(&stream));
    meanwhile();
    vm.go_on();
    end_to_guest(vm, stream, &noise, stopped_until);
}

/// It is not lost with the process that has acknowledged it.
#[test]
fn what_lies_in_the_ring_of_a_stopped_guest_is_acknowledged() {
    on_a_host_with_a_tap(|image| {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("socket");
        let mut domain = Domain::start(&socket, "--snoop");
        let mut vm = Vm::boot(image, &vhost_user(&socket));
        vm.run("ifconfig eth0 192.0.2.1 netmask 255.255.255.0");
        vm.run(&format!("head -c {TRANSFER_BYTES} /dev/urandom >/tmp/noise"));
        from_guest(&mut vm, &mut || ());
        to_guest(&mut vm, &mut || ());
        to_stopped_guest(&mut vm, &mut || ());
        to_stopped_guest(&mut vm, &mut || {
            domain.kill();
            domain = Domain::start(&socket, "--snoop --act hold");
        });
        to_guest(&mut vm, &mut || ());
    });
}
