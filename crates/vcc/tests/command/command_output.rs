//! What a run of a command says. Used by the tests of `vcc-lab`, too.

use std::process::Output;

use crate::NAME;

/// The output of one run of the command.
pub struct CommandOutput {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
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
    pub fn well(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{}", self.stdout);
        self.stdout
    }

    /// The one-line error of a run that ended with `code`.
    #[track_caller]
    pub fn complaint(self, code: i32) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{}", self.stderr);
        let line = self.stderr.strip_suffix('\n').expect("a line");
        assert!(!line.contains('\n'), "more than a line: {line}");
        let ends_as_before =
            |(at, colon): (usize, &str)| line[..at].ends_with(&line[at + colon.len()..]);
        assert!(!line.match_indices(": ").any(ends_as_before), "says a cause twice: {line}");
        let text = line.strip_prefix(NAME).and_then(|text| text.strip_prefix(": "));
        text.expect("the command's name").to_owned()
    }
}
