//! The JSON of each command that has `--json` and shows a host, and of the control socket, on a live one.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use serde_json::Value;
use vcc_testing::{guest, ip, on_a_host};

use super::golden::Golden;
use super::shape::Shape;
use crate::daemon::Place;
use crate::vcc;
use crate::wire::{connect, exchange};

/// All that can be named has a name, and there is a problem to report.
const POLICY: &str = "[[ports]]\ndevice = \"port*\"\ntenant = \"acme\"\nguest = \"web\"\n\
                      [[ports]]\ndevice = \"taken\"\n\
                      [[pools]]\nname = \"shared\"\nwindow = \"10M\"\n\
                      [[rules]]\nname = \"web\"\ntenant = \"acme\"\nunderlay = \"dctcp\"\npool = \"shared\"\n\
                      [default]\nmode = \"shadow\"\nunderlay = \"reno-ecn\"\n";

#[test]
fn json_of_commands() {
    on_a_host(|| {
        let guest = guest();
        ip("link add taken type veth peer name taken-guest");
        vcc("attach taken").well();
        let place = Place::new("stable", POLICY);
        let daemon = place.run_at("192.0.2.2:9644");
        daemon.is_ready();
        let (mut one, mut other) = connect(&guest);
        exchange(&mut one, &mut other);

        let mut shape = Shape::default();
        for arguments in [
            "status --json",
            "flows --json",
            "ports --json",
            "guests --seconds 1 --json",
            "doctor --json",
            "doctor --device port --json",
            "underlay list --json",
        ] {
            // Some have warnings, and the doctor's exit code is what it has found.
            let output = place.vcc(arguments);
            let name =
                arguments.replace(" --seconds 1", "").replace("--device port", "--device DEV");
            let document = serde_json::from_str(&output.stdout);
            let document =
                document.unwrap_or_else(|e| panic!("{arguments}: {e}: {}", output.stderr));
            shape.add(&format!("`vcc {name}`"), &document);
        }
        let file = std::env::temp_dir().join(format!("vcc-stable-{}.pcap", std::process::id()));
        std::fs::write(&file, crate::read::capture()).expect("a file");
        let read = vcc(&format!("read --json {}", file.display())).well();
        shape.add("`vcc read --json`", &serde_json::from_str(&read).expect("JSON"));
        let both = vcc(&format!("read --both {0} {0} --json", file.display())).well();
        shape.add("`vcc read --both --json`", &serde_json::from_str(&both).expect("JSON"));
        std::fs::remove_file(&file).expect("removed");
        place.write_hosts("192.0.2.2\n192.0.2.2:1\n");
        let output = place.vcc("top --hosts HOSTS --json");
        let hosts = serde_json::from_str(&output.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}", output.stderr));
        shape.add("`vcc top --hosts FILE --json`", &hosts);
        for request in ["status", "policy", "apply", "log_level"] {
            let answer = asked(place.connect(), &format!("{{\"request\":\"{request}\"}}"));
            shape.add(&format!("control:{request}"), &answer);
        }
        let golden = Golden::read("json");
        let is_known = |path: &str| {
            golden.lines().any(|line| line.rsplit_once(' ').is_some_and(|it| it.0 == path))
        };
        golden.assert(|line| shape.holds(line), shape.lines(is_known));
        drop((one, other));
    });
}

fn asked(mut socket: UnixStream, request: &str) -> Value {
    writeln!(socket, "{request}").expect("sent");
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line).expect("an answer");
    serde_json::from_str(&line).expect("JSON")
}
