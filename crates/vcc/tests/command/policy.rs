//! `vcc policy` and `vcc explain`.

use std::fs;

use tempfile::NamedTempFile;

use crate::{CommandOutput, vcc};

/// A policy file that goes with the test.
struct File(NamedTempFile);

impl File {
    fn new(text: &str) -> Self {
        let file = NamedTempFile::new().expect("a file");
        fs::write(file.path(), text).expect("written");
        Self(file)
    }

    /// A run of the command, with FILE in its arguments as this one.
    fn vcc(&self, arguments: &str) -> CommandOutput {
        vcc(&arguments.replace("FILE", self.name()))
    }

    fn name(&self) -> &str {
        self.0.path().to_str().expect("UTF-8")
    }
}

const POLICY: &str = r#"
[[ports]]
device = "vnet-a*"
tenant = "acme"

[[pools]]
name = "gold"
window = "2M"

[[rules]]
name = "web"
tenant = "acme"
guest_port = [80, "8000-8100"]
underlay = "dctcp"
pool = "gold"
guest_ecn = "override"
weight = 3
rto_min = "10ms"

[[rules]]
name = "beyond"
peer = "10.0.0.0/8"
mode = "ignore"

[default]
mode = "shadow"
"#;

#[test]
fn a_good_policy() {
    let file = File::new(POLICY);
    let output = file.vcc("policy check FILE").well();
    assert_eq!(
        output,
        format!(
            "{} is valid: 2 rules and a default, 1 pool, 1 pattern of ports; the default is reno-ecn, in shadow mode\n",
            file.name()
        )
    );
}

#[test]
fn all_that_is_wrong_with_a_bad_one() {
    let file = File::new("[[rules]]\nname = \"x\"\nunderlay = \"dtcp\"\nvlan = 5000\n");
    for command in
        ["policy check FILE", "policy show FILE", "explain 1.1.1.1:1 1.1.1.2:2 --file FILE"]
    {
        let output = file.vcc(command);
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{command}");
        let name = file.name();
        let expected = format!(
            "{name}:3:12: error: `dtcp` is not an underlay; the nearest is `dctcp`\n \
             3 | underlay = \"dtcp\"\n   |            ^^^^^^\n\
             {name}:4:8: error: must be a VLAN from 1 to 4094, or 0 for untagged, not 5000\n \
             4 | vlan = 5000\n   |        ^^^^\n\
             vcc: {name} is invalid: 2 errors\n"
        );
        assert_eq!(output.stderr, expected);
    }
}

#[test]
fn warnings_do_not_hinder() {
    let file = File::new("[[rules]]\nname = \"x\"\n[[rules]]\nname = \"y\"\n");
    let output = file.vcc("policy check FILE");
    assert_eq!(output.code, 0);
    assert!(output.stdout.contains("is valid: 2 rules, no default, "), "{}", output.stdout);
    assert!(output.stderr.contains(":4:8: warning: `y` is never reached"), "{}", output.stderr);
}

#[test]
fn no_such_file() {
    let complaint = vcc("policy check /nowhere/policy.toml").complaint(1);
    assert!(complaint.starts_with("cannot read /nowhere/policy.toml: No such file"), "{complaint}");
}

#[test]
fn shown_with_defaults() {
    let shown = File::new(POLICY).vcc("policy show FILE").well();
    let words =
        |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = shown.lines().map(words).collect();
    let expected = [
        "PORTS TENANT CLASS GUEST MAX-FLOWS BUFFER BUFFER-POLICY INSIDE ORDER",
        "vnet-a* acme - - 65536 - - - last",
        "",
        "POOL WINDOW",
        "gold 2M",
        "",
        "# RULE MODE UNDERLAY ACT POOL WINDOW-CAP RATE-CAP POLICE GUEST-ECN EMIT WINDOW-MAX \
         OTHER MATCHES",
        "1 web enforce dctcp window gold - - no override no 2M weight=3 rto_min=\"10ms\" tenant acme, guest \
         port 80 or 8000-8100",
        "2 beyond ignore - - - - - - - - - - peer 10.0.0.0/8",
        "3 default shadow reno-ecn window - - - no leave no 2M - any",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn ports_with_a_buffer_are_shown_with_it() {
    let port = "[[ports]]\nsocket = \"/run/vcc-*/card\"\nbuffer = \"8M\"\n";
    let policy = format!("{port}[default]\nact = \"hold\"\nretransmit = true\n");
    let file = File::new(&policy);
    let shown = file.vcc("policy show FILE").well();
    let shown: String = shown.split_whitespace().map(|word| format!("{word} ")).collect();
    assert!(shown.contains("/run/vcc-*/card - - - 65536 8M fair"), "{shown}");
    assert!(shown.contains("1 default enforce reno-ecn hold - - - no"), "{shown}");
    assert!(shown.contains("retransmit=true"), "{shown}");
    let output = file.vcc("explain 192.0.2.1:4000 198.51.100.9:80 --file FILE").well();
    assert!(output.contains("    how the window acts on it: hold\n"), "{output}");
    assert!(output.contains("    losses of held data are repaired from the buffer\n"), "{output}");
}

#[test]
fn explained_from_either_end() {
    let file = File::new(POLICY);
    let client = "explain 192.0.2.1:4000 198.51.100.9:80 --file FILE --device vnet-a1";
    let output = file.vcc(client).well();
    assert!(output.contains("`web` does not match:\n    guest port is 4000, not 80"), "{output}");
    assert!(output.contains("rule 3 `default` matches (any):"), "{output}");
    let output = file.vcc(&format!("{client} --role server")).well();
    assert!(output.starts_with("rule 1 `web` matches (tenant acme, guest port 80"), "{output}");
    let output = file.vcc("explain [fd00::1]:80 [fd00::2]:1 --file FILE --tenant other").well();
    assert!(output.contains("tenant is other, not acme"), "{output}");
    let complaint = file.vcc("explain 1.1.1.1:1 1.1.1.2:2 --file FILE --device eth0").complaint(1);
    assert!(complaint.contains("`eth0` is no port"), "{complaint}");
}

#[test]
fn the_schema_is_json() {
    let schema: serde_json::Value =
        serde_json::from_str(&vcc("policy schema").well()).expect("JSON");
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
}
