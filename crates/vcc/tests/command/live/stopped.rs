//! Snoop: a peer that waits for no turn of the guest.

use std::cell::Cell;
use std::io::Write;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::path::Path;

use vcc_qemu::Vm;
use vcc_testing::eventually;
use vcc_traffic::TcpInfo;

use super::{Domain, at, boot, from_guest, on_a_host_with_a_tap, to_guest};
use super::{begin_to_guest, end_to_guest, noise};
use crate::CommandOutput;

/// Sent before the guest stops, and while it is stopped. A guest that has read all may have said a
/// window of half of 64 KiB: Linux updates one that doubles.
const BEFORE_BYTES: usize = 3_000_000;
const STOPPED_BYTES: usize = 30_000;

pub fn is_acknowledged(stream: &TcpStream) -> bool {
    let mut left_bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ, which has this name too, writes an int.
    let status = unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &mut left_bytes) };
    assert_eq!(status, 0, "an open socket");
    left_bytes == 0
}

/// May the guest be sent the second part? What is acknowledged it has perhaps not read.
fn has_window(stream: &TcpStream) -> bool {
    let info = TcpInfo::read(stream).expect("a TCP socket");
    info.snd_wnd_bytes as usize >= STOPPED_BYTES
}

/// The peer sends on until it has to wait for the guest, which `vcc flows` says while it does. Returns how many
/// bytes it has sent.
fn wait_for_guest(socket: &Path, stream: &TcpStream, noise: &[u8]) -> usize {
    let peer = format!(":{}", stream.local_addr().expect("a TCP socket").port());
    let sent_bytes = Cell::new(0);
    stream.set_nonblocking(true).expect("a TCP socket");
    eventually("the connection waits for its guest", || {
        let mut writer = stream;
        while sent_bytes.get() < noise.len() {
            let Ok(part_bytes) = writer.write(&noise[sent_bytes.get()..]) else { break };
            sent_bytes.set(sent_bytes.get() + part_bytes);
        }
        let flows = at(socket).args(["flows", "tap0", "--json", "--peer", &peer]).output();
        let printed: CommandOutput = flows.expect("the command").into();
        let flows: serde_json::Value = serde_json::from_str(&printed.well()).expect("JSON");
        flows[0]["delayed_by"] == "guest"
    });
    stream.set_nonblocking(false).expect("a TCP socket");
    sent_bytes.get()
}

/// The guest receives noise. A part of it is acknowledged while the guest cannot do so, and then
/// comes `meanwhile`, which sends so much of the rest.
fn to_stopped_guest(vm: &mut Vm, meanwhile: &mut dyn FnMut(&TcpStream, &[u8]) -> usize) {
    let noise = noise();
    let mut stream = begin_to_guest(vm);
    stream.write_all(&noise[..BEFORE_BYTES]).expect("the first part");
    eventually("the first part is acknowledged", || is_acknowledged(&stream));
    eventually("the guest has read it", || has_window(&stream));
    vm.stop().expect("it stops");
    let stopped_until = BEFORE_BYTES + STOPPED_BYTES;
    stream.write_all(&noise[BEFORE_BYTES..stopped_until]).expect("the second part");
    eventually("the second part is acknowledged", || is_acknowledged(&stream));
    let sent_bytes = stopped_until + meanwhile(&stream, &noise[stopped_until..]);
    vm.go_on().expect("it continues");
    end_to_guest(vm, stream, &noise, sent_bytes);
}

/// It is not lost with the process that has acknowledged it.
#[test]
fn what_lies_in_the_ring_of_a_stopped_guest_is_acknowledged() {
    on_a_host_with_a_tap(|image| {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("socket");
        let mut domain = Domain::start(&socket, "--receive ring");
        let mut vm = boot(image, &socket);
        from_guest(&mut vm, &mut || ());
        to_guest(&mut vm, &mut || ());
        to_stopped_guest(&mut vm, &mut |stream, rest| wait_for_guest(&socket, stream, rest));
        to_stopped_guest(&mut vm, &mut |_, _| {
            domain.kill();
            domain = Domain::start(&socket, "--receive ring --act hold");
            0
        });
        to_guest(&mut vm, &mut || ());
    });
}
