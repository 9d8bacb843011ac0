use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};

use vcc_testing::{guest, ip, on_a_host};

use crate::{command, vcc};

/// `vcc emit` in the background, from when it serves.
struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    fn begin(arguments: &str) -> (Self, String) {
        let mut child = command()
            .arg("emit")
            .args(arguments.split_whitespace())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command");
        let mut stdout = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        (Self { child, stdout }, line)
    }

    fn interrupt(&self) {
        // SAFETY: the call takes no pointers; the child has not been waited for.
        let status = unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGINT) };
        assert_eq!(status, 0);
    }

    fn end(mut self) -> String {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("its last words");
        assert!(self.child.wait().expect("its end").success());
        rest
    }
}

#[test]
fn ports_are_served_until_ctrl_c() {
    on_a_host(|| {
        let _guest = guest();
        ip("link add other type veth peer name unused");
        vcc("attach other").well();
        let complaint = vcc("emit").complaint(1);
        assert!(
            complaint.starts_with("no port in this network namespace was attached with --emit"),
            "{complaint}"
        );
        let complaint = vcc("emit other").complaint(1);
        assert!(complaint.starts_with("`other` was attached without --emit"), "{complaint}");

        let printed = vcc("attach port --emit").well();
        assert!(printed.contains("while `vcc emit` runs"), "{printed}");
        let (running, line) = Running::begin("");
        assert_eq!(line, "sending to the guests at port\n");
        let complaint = vcc("emit port").complaint(1);
        assert!(complaint.starts_with("another `vcc emit` is running at `port`"), "{complaint}");
        running.interrupt();
        assert_eq!(running.end(), "port: 0 duplicate ACKs, 0 window updates\n");
    });
}

#[test]
fn serving_ends_with_the_port() {
    on_a_host(|| {
        let _guest = guest();
        vcc("attach port --emit").well();
        let (running, _) = Running::begin("port");
        assert_eq!(vcc("detach port").well(), "detached from port\n");
        assert!(running.end().starts_with("port: "));
    });
}
