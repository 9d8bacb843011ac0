//! A virtual machine behind `vcc domain`: what it sends and receives arrives whole.

mod accepted;
mod channel;
mod cpu;
mod device;
mod moving;
mod recorded;
mod ruled;
mod stopped;
mod tap;

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use vcc_qemu::{Image, Kernel, Vm};
use vcc_testing::{EndOnDrop, can_attach, eventually, ip, isolated, skip};

use crate::{CommandOutput, command};

const TRANSFER_BYTES: usize = 12_000_000;
/// Where a transfer is interrupted.
const INTERRUPTED_AT: usize = TRANSFER_BYTES / 4;

/// The command, with the runtime directory beside the socket.
fn at(socket: &Path) -> Command {
    let mut command = command();
    command.env("RUNTIME_DIRECTORY", socket.parent().expect("a directory"));
    command
}

/// The guest's port, as `vcc ports` shows it.
fn port(socket: &Path) -> serde_json::Value {
    let printed: CommandOutput =
        at(socket).args(["ports", "--json"]).output().expect("the command").into();
    let ports: serde_json::Value = serde_json::from_str(&printed.well()).expect("JSON");
    ports[0].clone()
}

/// Its port and a connection to `peer_port` are seen like those in the kernel.
fn assert_seen(socket: &Path, peer_port: u16) {
    let seen = |arguments: &[&str]| -> serde_json::Value {
        let printed: CommandOutput =
            at(socket).args(arguments).output().expect("the command").into();
        serde_json::from_str(&printed.well()).expect("JSON")
    };
    let ports = seen(&["ports", "--json"]);
    assert_eq!((&ports[0]["port"], &ports[0]["mode"]), (&"tap0".into(), &"enforce".into()));
    assert!(ports[0]["held_bytes"].is_u64(), "{ports}");
    assert!(ports[0]["flows"].as_u64() > Some(0), "{ports}");
    let flows = seen(&["flows", "tap0", "--json", "--peer", &format!(":{peer_port}")]);
    assert_eq!((&flows[0]["port"], &flows[0]["stage"]), (&"tap0".into(), &"established".into()));
    assert!(flows[0]["cwnd_segs"].as_u64() > Some(0), "{flows}");
    recorded::assert_recorded(socket, peer_port);
}

/// `vcc domain`, until it is dropped.
struct Domain(Child);

impl Domain {
    fn start(socket: &Path, options: &str) -> Self {
        Self::start_on("tap0", socket, options)
    }

    fn start_on(tap: &str, socket: &Path, options: &str) -> Self {
        let socket_option = format!("--socket {}", socket.display());
        Self::serve(socket, &format!("--tap {tap} {socket_option} {options}"))
    }

    fn in_front_of(device: &str, socket: &Path, options: &str) -> Self {
        Self::serve(socket, &format!("--device {device} {options}"))
    }

    fn serve(socket: &Path, options: &str) -> Self {
        Self::spawn(at(socket).arg("domain").args(options.split_whitespace()))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the command");
        let mut line = String::new();
        let output = child.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert!(line.starts_with("serving "), "{line}");
        Domain(child)
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: the call takes no pointers, and the process has not been waited for.
        unsafe { libc::kill(self.0.id() as libc::pid_t, signal) };
    }

    /// SIGTERM, as systemd's.
    fn stop(&mut self) {
        self.signal(libc::SIGTERM);
        assert!(self.0.wait().expect("its end").success());
    }

    /// SIGKILL, as a crash.
    fn kill(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("its end");
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        self.kill();
    }
}

fn sha256(bytes: &[u8]) -> String {
    let mut child = Command::new("sha256sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sha256sum");
    child.stdin.take().expect("its input").write_all(bytes).expect("written");
    let output = child.wait_with_output().expect("its end").stdout;
    String::from_utf8(output).expect("UTF-8").split_whitespace().next().expect("a sum").to_owned()
}

/// A guest with noise to send, whose card is behind the socket.
fn boot(image: &Image, socket: &Path) -> Vm {
    boot_at(image, &vhost_user(socket))
}

fn boot_at(image: &Image, network: &[String]) -> Vm {
    let mut vm = Vm::boot(image, network, |_| ()).expect("a guest");
    run(&mut vm, "ifconfig eth0 192.0.2.1 netmask 255.255.255.0");
    run(&mut vm, &format!("head -c {TRANSFER_BYTES} /dev/urandom >/tmp/noise"));
    vm
}

#[track_caller]
fn run(vm: &mut Vm, line: &str) -> String {
    vm.run(line).expect("a guest that answers")
}

/// The guest sends a file of noise. `midway` is called once a part of it has come.
fn from_guest(vm: &mut Vm, midway: &mut dyn FnMut()) {
    let sum = run(vm, "sha256sum /tmp/noise");
    let mut stream = begin_from_guest(vm);
    let mut bytes = vec![0; INTERRUPTED_AT];
    stream.read_exact(&mut bytes).expect("the first part");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = EndOnDrop(&over);
        scope.spawn(|| read_slowly(&mut stream, &mut bytes, &over));
        midway();
    });
    stream.read_to_end(&mut bytes).expect("the rest");
    drop(stream);
    vm.finish().expect("its end");
    assert_eq!(bytes.len(), TRANSFER_BYTES);
    assert!(sum.contains(&sha256(&bytes)), "not what the guest has sent: {sum}");
}

/// A connection of a guest that sends its noise. It lasts as long as it is read: with its own buffer,
/// the kernel would take all of it at once.
fn begin_from_guest(vm: &mut Vm) -> TcpStream {
    let listener = TcpListener::bind("192.0.2.2:5001").expect("an address");
    socket2::SockRef::from(&listener).set_recv_buffer_size(1 << 20).expect("a buffer");
    vm.begin("nc 192.0.2.2 5001 </tmp/noise").expect("a guest that listens");
    listener.accept().expect("a connection").0
}

/// Reads until it is `over` or the end, slowly enough for the transfer to last: a peer that did not read would
/// stop the connection with a window of zero.
fn read_slowly(stream: &mut TcpStream, bytes: &mut Vec<u8>, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let mut part = [0; 1 << 14];
        let part_bytes = stream.read(&mut part).expect("a part");
        if part_bytes == 0 {
            return;
        }
        bytes.extend_from_slice(&part[..part_bytes]);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The guest sends to a peer that does not read on, until the port holds what it has promised; then
/// `ends` ends the process. Both ends see that the connection has ended.
fn broken_from_guest(vm: &mut Vm, socket: &Path, ends: &mut dyn FnMut()) {
    let listener = TcpListener::bind("192.0.2.2:5003").expect("an address");
    socket2::SockRef::from(&listener).set_recv_buffer_size(1 << 16).expect("a small buffer");
    vm.begin("nc 192.0.2.2 5003 </tmp/noise").expect("a guest that listens");
    let (mut stream, _) = listener.accept().expect("a connection");
    eventually("promises are held", || port(socket)["held_bytes"].as_u64() > Some(200_000));
    ends();
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let end = stream.read_to_end(&mut Vec::new()).expect_err("not all has come");
    assert_eq!(end.kind(), ErrorKind::ConnectionReset);
    vm.finish().expect("its end");
}

/// The guest receives noise, likewise.
fn to_guest(vm: &mut Vm, midway: &mut dyn FnMut()) {
    let noise = noise();
    let mut stream = begin_to_guest(vm);
    stream.write_all(&noise[..INTERRUPTED_AT]).expect("the first part");
    midway();
    end_to_guest(vm, stream, &noise, INTERRUPTED_AT);
}

fn noise() -> Vec<u8> {
    let mut noise = vec![0; TRANSFER_BYTES];
    std::fs::File::open("/dev/urandom").expect("noise").read_exact(&mut noise).expect("noise");
    noise
}

/// A connection to a guest that prints the sum of what it receives.
fn begin_to_guest(vm: &mut Vm) -> TcpStream {
    vm.begin("nc -l -p 5002 | sha256sum").expect("a guest that listens");
    loop {
        // Until the guest listens.
        match TcpStream::connect("192.0.2.1:5002") {
            Ok(stream) => return stream,
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Sends the rest of the noise. The guest has received all of it.
fn end_to_guest(vm: &mut Vm, mut stream: TcpStream, noise: &[u8], sent_bytes: usize) {
    stream.write_all(&noise[sent_bytes..]).expect("the rest");
    stream.shutdown(Shutdown::Write).expect("an end");
    let sum = vm.finish().expect("its end");
    assert!(sum.contains(&sha256(noise)), "not what the guest was sent: {sum}");
}

/// On a host with a tap, with all that a virtual machine needs; otherwise skipped.
#[track_caller]
fn on_a_host_with_a_tap(work: impl FnOnce(&Image) + Send) {
    if !can_attach() {
        return;
    }
    if !vcc_qemu::has_qemu() {
        return skip("QEMU is not installed");
    }
    let Some(image) = Image::cached(Kernel::Debian).expect("the script") else {
        return skip("guest/live/build.sh has not been run");
    };
    isolated(|| {
        ip("link set lo up");
        ip("tuntap add dev tap0 mode tap");
        ip("address add 192.0.2.2/24 dev tap0");
        ip("link set tap0 up");
        work(&image);
    });
}

/// QEMU connects again when `vcc domain` is back.
fn vhost_user(socket: &Path) -> [String; 4] {
    let path = socket.display();
    [
        "-chardev".to_owned(),
        format!("socket,id=socket,path={path},reconnect=1"),
        "-netdev".to_owned(),
        "vhost-user,id=net,chardev=socket".to_owned(),
    ]
}

/// Under `split`, the guest has all of its data acknowledged.
#[test]
fn a_promise_is_kept_or_broken_at_both_ends() {
    on_a_host_with_a_tap(|image| {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("socket");
        let mut domain = Domain::start(&socket, "--act split");
        let mut vm = boot(image, &socket);
        from_guest(&mut vm, &mut || ());
        to_guest(&mut vm, &mut || ());
        for end in [Domain::kill, Domain::stop] {
            broken_from_guest(&mut vm, &socket, &mut || {
                end(&mut domain);
                domain = Domain::start(&socket, "--act split");
            });
        }
        from_guest(&mut vm, &mut || ());
    });
}

#[test]
fn transfers_arrive_whole_with_each_act_and_through_a_crash() {
    on_a_host_with_a_tap(|image| {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("socket");
        let mut domain = Domain::start(&socket, "--act window");
        let mut vm = boot(image, &socket);
        from_guest(&mut vm, &mut || ());
        to_guest(&mut vm, &mut || ());
        domain.kill();
        domain = Domain::start(&socket, "--act hold --buffer-kib 1024");
        from_guest(&mut vm, &mut || assert_seen(&socket, 5001));
        to_guest(&mut vm, &mut || ());
        for transfer in [from_guest, to_guest] {
            transfer(&mut vm, &mut || {
                domain.kill();
                domain = Domain::start(&socket, "--act hold");
            });
        }
    });
}
