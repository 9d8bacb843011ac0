//! Accept: a peer whose SYN waits for no turn of the guest.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use vcc_qemu::Vm;
use vcc_testing::eventually;

use super::stopped::is_acknowledged;
use super::{Domain, boot, noise, on_a_host_with_a_tap, port, run, sha256};

const LIMIT: Duration = Duration::from_secs(60);
const PART_BYTES: usize = 3_000_000;
/// What a process of the guest sends back.
const ECHO_BYTES: usize = 200_000;
const SUMS_PORT: u16 = 5002;
const ECHO_PORT: u16 = 5003;

fn connect(port: u16) -> TcpStream {
    let guest = SocketAddr::from(([192, 0, 2, 1], port));
    let stream = TcpStream::connect_timeout(&guest, LIMIT).expect("a connection");
    for set in [TcpStream::set_read_timeout, TcpStream::set_write_timeout] {
        set(&stream, Some(LIMIT)).expect("a timeout");
    }
    stream
}

fn accepted(socket: &Path) -> u64 {
    port(socket)["counters"]["accepted"].as_u64().expect("a counter")
}

/// Each listener answers a SYN itself, so that it is known.
fn listen(vm: &mut Vm) {
    run(vm, &format!("(nc -ll -p {SUMS_PORT} -e sh -c 'sha256sum >>/tmp/sums' </dev/null &)"));
    run(vm, &format!("(nc -ll -p {ECHO_PORT} -e cat </dev/null &)"));
    for port in [SUMS_PORT, ECHO_PORT] {
        eventually("the guest listens", || TcpStream::connect(("192.0.2.1", port)).is_ok());
    }
}

/// Until the condition is met in the guest.
fn wait_in(vm: &mut Vm, condition: &str) {
    let waits =
        format!("for i in $(seq 300); do {condition} && echo m''et && break; sleep 0.1; done");
    assert!(run(vm, &waits).contains("met"), "{condition}");
}

fn expect_reset(mut stream: TcpStream) {
    let end = stream.read_to_end(&mut Vec::new()).expect_err("no end of the guest's");
    assert_eq!(end.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_stopped_guests_connections_are_accepted_and_whole() {
    on_a_host_with_a_tap(|image| {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("socket");
        let mut domain = Domain::start(&socket, "--receive accept");
        let mut vm = boot(image, &socket);
        listen(&mut vm);
        let (before, noise) = (accepted(&socket), noise());
        vm.stop().expect("it stops");
        let (part, asked) = (&noise[..PART_BYTES], &noise[PART_BYTES..PART_BYTES + ECHO_BYTES]);
        let [mut sums, mut echo] = [SUMS_PORT, ECHO_PORT].map(connect);
        sums.write_all(part).expect("a part");
        sums.shutdown(Shutdown::Write).expect("an end");
        echo.write_all(asked).expect("what to send back");
        eventually("all of it is acknowledged", || is_acknowledged(&echo));
        vm.go_on().expect("it continues");
        let mut answer = vec![0; ECHO_BYTES];
        echo.read_exact(&mut answer).expect("an answer");
        assert!(answer == asked, "not what the guest was asked");
        assert_eq!(sums.read(&mut [0]).expect("the guest's end"), 0);
        wait_in(&mut vm, &format!("grep -q {} /tmp/sums", sha256(part)));
        assert_eq!(accepted(&socket), before + 2);
        // Without the process, both ends of what it has accepted see the end.
        domain.kill();
        domain = Domain::start(&socket, "--receive accept");
        expect_reset(echo);
        wait_in(&mut vm, "! netstat -tn | grep -q ':5003 .*ESTABLISHED'");

        // One that has closed its port since refuses it when it runs.
        eventually("the guest answers", || TcpStream::connect(("192.0.2.1", ECHO_PORT)).is_ok());
        run(&mut vm, "killall nc; true");
        vm.stop().expect("it stops");
        let refused = connect(ECHO_PORT);
        assert_eq!(accepted(&socket), 1);
        vm.go_on().expect("it continues");
        expect_reset(refused);
        drop(domain);
    });
}
