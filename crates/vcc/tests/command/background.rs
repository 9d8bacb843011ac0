//! A command that writes to a file in the background.

use std::path::PathBuf;
use std::process::{Child, Stdio};

use tempfile::TempDir;

use crate::{CommandOutput, command};

pub struct Background {
    pub child: Child,
    directory: TempDir,
    file: &'static str,
}

impl Background {
    /// `vcc NAME ARGUMENTS --output FILE`, in a directory of its own.
    pub fn begin(name: &str, arguments: &str, file: &'static str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let child = command()
            .arg(name)
            .args(arguments.split_whitespace())
            .arg("--output")
            .arg(directory.path().join(file))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command");
        Self { child, directory, file }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join(self.file)
    }

    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: the call takes no pointers; the child has not been waited for.
        let status = unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
        assert_eq!(status, 0);
    }

    pub fn wait(self) -> (CommandOutput, TempDir) {
        let shown = self.child.wait_with_output().expect("its end").into();
        (shown, self.directory)
    }
}
