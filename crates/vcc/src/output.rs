//! The output of the command: results on stdout, errors on stderr in one line each, except those
//! that quote a file. Control characters are escaped, because names of devices and files may
//! contain any. Cells of tables on a terminal are made with [`printable_line`].

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

use anyhow::Context;
use serde::Serialize;
use vcc_policy::text::printable;
pub use vcc_policy::text::printable_line;

/// The first error of writing to stdout, other than EPIPE.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Writes to stdout. A reader that has gone (`| head`) is not an error. Other errors are reported
/// at the [`end`], so that the command completes its work.
pub fn say(text: &str) {
    still_heard(text);
}

/// Prints like [`say`]; false if stdout has been closed.
pub fn still_heard(text: &str) -> bool {
    draw(&printable(text))
}

/// Like [`still_heard`], without escaping: for text with control sequences of our own.
pub fn draw(text: &str) -> bool {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => true,
        Err(error) => {
            if error.kind() != io::ErrorKind::BrokenPipe {
                let _ = LOST.set(error);
            }
            false
        }
    }
}

/// The exit code of a command that ended with `code`: a failure if stdout could not be written.
pub fn end(code: ExitCode) -> ExitCode {
    let Some(error) = LOST.get() else { return code };
    complain(&format!("cannot write to stdout: {error}"));
    ExitCode::FAILURE
}

pub fn complain(text: &str) {
    let line: Vec<&str> = text.split_whitespace().collect();
    complain_at_length(&format!("vcc: {}", line.join(" ")));
}

/// For errors that quote a line of a file.
pub fn complain_at_length(text: &str) {
    // An error of writing to stderr cannot be reported.
    let _ = writeln!(io::stderr().lock(), "{}", printable(text));
}

pub fn say_json(value: &impl Serialize) -> anyhow::Result<()> {
    say(&(serde_json::to_string_pretty(value)? + "\n"));
    Ok(())
}

pub fn write_json(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
