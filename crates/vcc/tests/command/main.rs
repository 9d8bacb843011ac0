//! The command as a user meets it: what it prints, where, and with which exit code.

mod browser;
mod coexistence;
mod daemon;
mod docs;
mod emitting;
mod generating;
mod guests;
mod kubernetes;
mod lab;
mod libvirt;
mod lifecycle;
mod live;
mod measuring;
mod page;
mod policy;
mod pty;
mod refusals;
mod screen;
mod seeing;
mod stable;
mod tracing;
mod underlays;
mod usage;
mod virtual_time;
mod wire;

use std::process::{Command, Output};

/// The output of one run of the command.
struct CommandOutput {
    code: i32,
    stdout: String,
    stderr: String,
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("an exit code"),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}

impl CommandOutput {
    /// The standard output of a run that succeeded without warnings.
    #[track_caller]
    fn well(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{}", self.stdout);
        self.stdout
    }

    /// The one-line error of a run that ended with `code`.
    #[track_caller]
    fn complaint(self, code: i32) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{}", self.stderr);
        let line = self.stderr.strip_suffix('\n').expect("a line");
        assert!(!line.contains('\n'), "more than a line: {line}");
        let ends_as_before =
            |(at, colon): (usize, &str)| line[..at].ends_with(&line[at + colon.len()..]);
        assert!(!line.match_indices(": ").any(ends_as_before), "says a cause twice: {line}");
        line.strip_prefix("vcc: ").expect("the command's name").to_owned()
    }
}

/// Knows of no daemon: one of this machine's own is not asked.
fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vcc"));
    command.env("RUNTIME_DIRECTORY", std::env::temp_dir().join("vcc-no-daemon"));
    command
}

fn vcc(arguments: &str) -> CommandOutput {
    command().args(arguments.split_whitespace()).output().expect("the command").into()
}
