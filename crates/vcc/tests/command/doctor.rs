use serde_json::Value;
use vcc_testing::can_attach;

use crate::{CommandOutput, command, vcc};

#[test]
fn doctor_reports_each_check() {
    let output = vcc("doctor --json");
    let checks: Value = serde_json::from_str(&output.stdout).expect("JSON");
    let checks = checks.as_array().expect("an array");
    let attaches = checks.iter().all(|check| check["ok"] == true || check["need"] != "attach");
    assert_eq!(output.code, i32::from(!attaches));
    for name in ["kernel", "capabilities", "tcx", "tun"] {
        assert!(checks.iter().any(|check| check["name"] == name), "{name}");
    }
    // A message about something missing names the next step.
    assert!(checks.iter().all(|check| check["ok"] == true || check["remedy"].is_string()));
}

/// Packages depend on neither, so a host may have neither.
#[test]
fn what_only_the_lab_lacks_is_no_error_of_the_doctor() {
    if !can_attach() {
        return;
    }
    let without_tools = |arguments: &[&str]| -> CommandOutput {
        let mut doctor = command();
        doctor.env("PATH", "/nowhere").args(arguments);
        doctor.output().expect("the command").into()
    };
    let output = without_tools(&["doctor"]).well();
    let (attach, lab) = output.split_once("For the lab:\n").expect("two parts");
    assert!(!attach.contains("MISSING"), "{output}");
    assert!(lab.contains("no `ethtool` in $PATH"), "{output}");
    assert!(lab.contains("vcc can attach; "), "{output}");
    assert!(lab.ends_with(" missing, which only the lab needs.\n"), "{output}");
    let output = without_tools(&["doctor", "--json"]).well();
    assert!(output.contains("no `ip` in $PATH"), "{output}");
}
