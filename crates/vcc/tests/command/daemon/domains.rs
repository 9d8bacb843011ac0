//! Ports of `vcc domain` under the daemon's file.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use vcc_testing::{ip, on_a_host};

use super::{POLICY, Place};

struct Domain {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Domain {
    fn start(place: &Place) -> Self {
        let mut command = place.command();
        command.args(["domain", "--tap", "tap0", "--socket"]).arg(place.path("card"));
        command.arg("--policy").arg(place.config());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the command");
        let lines = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, lines }
    }

    fn says(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        line
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_policy_that_is_applied_reaches_them() {
    on_a_host(|| {
        ip("tuntap add dev tap0 mode tap");
        let sockets = "[[ports]]\nsocket = \"*/card\"\ntenant = \"deep\"\n";
        let rule = "[[rules]]\nname = \"deep\"\ntenant = \"deep\"\nact = \"split\"\n";
        let place = Place::new("domains", &format!("{sockets}{POLICY}"));
        let mut domain = Domain::start(&place);
        let said = domain.says();
        assert!(said.contains("card on tap0: 0 rules and a default of "), "{said}");
        let daemon = place.run();
        let ready = daemon.is_ready();
        assert!(ready.contains("0 ports under "), "a socket is no device: {ready}");
        assert_eq!(place.vcc("status").well().matches("problem").count(), 0);

        place.write(&format!("{sockets}max_flows = 5\n{POLICY}{rule}"));
        let said = place.vcc("policy apply").well();
        assert!(said.contains("told to read theirs again: tap0\n"), "{said}");
        let said = domain.says();
        assert!(said.contains("1 rule and a default of ") && said.contains("not 5"), "{said}");
        let said = place.vcc("policy apply FILE").well();
        assert!(!said.contains("tap0"), "a trial is the daemon's alone: {said}");

        place.write("[[ports]]\ndevice = \"port*\"\n");
        let said = place.vcc("policy apply").well();
        assert!(said.contains("told to read theirs again: tap0\n"), "{said}");
        let ports = place.vcc("ports --json").well();
        assert!(ports.contains("\"by rule\""), "what was in force stays: {ports}");
    });
}
