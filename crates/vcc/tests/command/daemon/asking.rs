//! At the socket: who asks nonsense, too much, or without leave.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::thread;

use vcc_testing::on_a_host;

use super::{POLICY, Place};

/// The answer's only line.
pub(super) fn answer(stream: UnixStream) -> String {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let line = lines.next().expect("an answer");
    assert_eq!(lines.next(), None, "one line, and the end");
    line
}

#[test]
fn garbage_is_answered_and_counted() {
    on_a_host(|| {
        let place = Place::new("garbage", POLICY);
        let daemon = place.run();
        daemon.is_ready();
        let garbage: [&[u8]; 8] = [
            b"\n",
            b"hello\n",
            b"{}\n",
            b"{\"request\":\"fly\"}\n",
            b"{\"request\":\"apply\",\"policy\":7}\n",
            b"{\"request\":\"apply\",\"policy\":{\"text\":\"\",\"file_name\":\"x\",\"y\":1}}\n",
            b"\xff\xfe\0\n",
            b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n",
        ];
        for request in garbage {
            let mut stream = place.connect();
            stream.write_all(request).expect("sent");
            let output = answer(stream);
            assert!(output.starts_with("{\"refused\":{\"why\":\"unknown request"), "{output}");
        }
        let mut stream = place.connect();
        stream.write_all(b"{\"request\":").expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("half closed");
        assert!(answer(stream).contains("does not end with a newline"));
        drop(place.connect());
        assert_eq!(place.status()["rejected_requests"], garbage.len() as u64 + 1);
    });
}

#[test]
fn too_much_is_too_much() {
    on_a_host(|| {
        let place = Place::new("too-much", POLICY);
        let daemon = place.run();
        daemon.is_ready();
        let mut stream = place.connect();
        // The daemon closes the connection before the client has sent the whole request.
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..8 {
            let _ = stream.write_all(&chunk);
        }
        daemon.wait_for_log("the request is longer than");

        let idle: Vec<UnixStream> = (0..16).map(|_| place.connect()).collect();
        let output = answer(place.connect());
        assert!(output.contains("too many connections"), "{output}");
        drop(idle);
        // Closed connections free their places as soon as the daemon notices.
        while place.vcc("status").code != 0 {
            thread::yield_now();
        }
        let mut slow = place.connect();
        slow.write_all(b"{").expect("sent");
        let output = answer(slow);
        assert!(output.contains("the request was not complete within"), "{output}");
    });
}

#[test]
fn a_policy_at_the_socket_is_checked_like_any() {
    on_a_host(|| {
        let place = Place::new("checked", POLICY);
        let daemon = place.run();
        daemon.is_ready();
        let mut stream = place.connect();
        let request = "{\"request\":\"apply\",\"policy\":{\"file_name\":\"x\",\
                       \"text\":\"[default]\\nunderlya = 1\\n\"}}\n";
        stream.write_all(request.as_bytes()).expect("sent");
        let output = answer(stream);
        assert!(output.contains("x:2:1: error: ") && output.contains("`underlay`"), "{output}");
        assert_eq!(place.status()["epoch"], 1);
    });
}

#[test]
fn there_is_one_daemon() {
    on_a_host(|| {
        let place = Place::new("first", POLICY);
        let daemon = place.run();
        daemon.is_ready();
        let other = Place::new("second", POLICY);
        let complaint = other.vcc("run --config FILE").complaint(1);
        assert!(complaint.starts_with("another `vcc run` is running"), "{complaint}");
        assert!(!other.socket().exists());
        assert_eq!(place.status()["epoch"], 1);
    });
}

#[test]
fn strangers_are_kept_out_by_the_kernel() {
    on_a_host(|| {
        let place = Place::new("strangers", POLICY);
        let daemon = place.run();
        daemon.is_ready();
        let mode = |path: &std::path::Path| {
            std::fs::metadata(path).expect("there").permissions().mode() & 0o777
        };
        let socket = place.socket();
        assert_eq!(mode(&socket), 0o660);
        assert_eq!(mode(socket.parent().expect("a directory")), 0o750);
        let refused = thread::spawn(move || {
            const NOBODY: libc::uid_t = 65_534;
            // By system call, which means the calling thread; by libc it would be all threads.
            // SAFETY: the calls take no pointers.
            let changed = unsafe {
                libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>())
                    | libc::syscall(libc::SYS_setresgid, NOBODY, NOBODY, NOBODY)
                    | libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY)
            };
            assert_eq!(changed, 0);
            UnixStream::connect(socket).expect_err("refused").kind()
        });
        assert_eq!(refused.join().expect("a thread"), ErrorKind::PermissionDenied);
    });
}
