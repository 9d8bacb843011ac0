//! The command as a user of a guest meets it. Registering is tried in virtual machines, by
//! scripts/check-kernels.sh: the kernel's names are global to the machine.

#[path = "../../../vcc/tests/command/command_output.rs"]
mod command_output;

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use command_output::CommandOutput;
use serde_json::Value;

const NAME: &str = "vcc-guest";
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_vcc-guest"))
}

fn guest(arguments: &str) -> CommandOutput {
    command().args(arguments.split_whitespace()).output().expect("the command").into()
}

#[test]
fn help_names_the_commands_and_the_danger() {
    let help = guest("--help").well();
    for command in ["flood", "remove", "status"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command} in {help}");
    }
    assert!(help.contains("floods the guest's network") && !help.contains("generate"), "{help}");
    let help = guest("flood --help").well();
    assert!(help.contains("WARNING") && help.contains("'vcc domain --act hold'"), "{help}");
    assert!(help.contains("--channel[=<PATH>]") && help.contains("/dev/virtio-ports/"), "{help}");
    let version = format!("vcc-guest {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(guest("--version").well(), version);
}

#[test]
fn wrong_arguments() {
    assert_eq!(guest("").complaint(2), "no command given: `vcc-guest --help` lists them");
    for (arguments, expected) in [
        ("flod", "'flod'"),
        ("flood now", "'now'"),
        ("flood --channel /dev/null", "'/dev/null'"),
        ("remove --all", "'--all'"),
        ("status x", "'x'"),
    ] {
        let complaint = guest(arguments).complaint(2);
        assert!(complaint.contains(expected), "{arguments}: {complaint}");
    }
}

#[test]
fn only_root_changes_anything() {
    const NOBODY: u32 = 65534;
    // SAFETY: the call cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let before = fs::read_to_string(DEFAULT).expect("a default");
    for arguments in ["flood", "flood --available", "flood --channel", "remove"] {
        // As another user, a binary in a directory of root's cannot be run by its path.
        let mut command = Command::new("/proc/self/fd/3");
        let binary = fs::File::open(env!("CARGO_BIN_EXE_vcc-guest")).expect("the command");
        command.args(arguments.split_whitespace());
        if is_root {
            command.uid(NOBODY);
        }
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&binary);
        // SAFETY: the call is safe between fork and exec, and the file stays open until after it.
        unsafe {
            command.pre_exec(move || match libc::dup2(descriptor, 3) {
                0.. => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let complaint = CommandOutput::from(command.output().expect("run")).complaint(1);
        assert!(
            complaint.starts_with("only root can ") && complaint.contains("sudo"),
            "{complaint}"
        );
    }
    assert_eq!(fs::read_to_string(DEFAULT).expect("a default"), before);
}

#[test]
fn a_status_is_for_people_and_scripts() {
    let default = fs::read_to_string(DEFAULT).expect("a default");
    let default = default.trim();
    let text = guest("status").well();
    let starts = ["kernel: Linux ", "flood: ", "default of new connections: ", "connections: "];
    for (line, start) in text.lines().zip(starts) {
        assert!(line.starts_with(start), "{text}");
    }
    assert_eq!(text.lines().count(), starts.len(), "{text}");
    assert!(text.contains(&format!("default of new connections: {default}")), "{text}");

    let status: Value = serde_json::from_str(&guest("status --json").well()).expect("JSON");
    let keys: Vec<&String> = status.as_object().expect("an object").keys().collect();
    let expected = [
        "channel",
        "connections",
        "connections_unknown",
        "default",
        "default_before",
        "kernel",
        "lacks",
        "pin",
        "registered",
    ];
    let mut sorted = keys.clone();
    sorted.sort();
    assert_eq!(sorted, expected);
    assert_eq!(status["default"], default);
}

#[test]
fn every_command_has_a_page_and_is_completed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    for what in ["man", "completions"] {
        assert_eq!(guest(&format!("generate {what} {}", path.display())).well(), "");
    }
    let names = fs::read_dir(path).expect("a directory").map(|entry| entry.expect("an entry"));
    let mut names: Vec<_> =
        names.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    let expected = [
        "_vcc-guest",
        "vcc-guest-flood.8",
        "vcc-guest-remove.8",
        "vcc-guest-status.8",
        "vcc-guest.8",
        "vcc-guest.bash",
        "vcc-guest.fish",
    ];
    assert_eq!(names, expected);
    for completions in ["_vcc-guest", "vcc-guest.bash", "vcc-guest.fish"] {
        let text = fs::read_to_string(path.join(completions)).expect("a script");
        assert!(text.contains("flood") && !text.contains("generate"), "{completions}");
    }
}
