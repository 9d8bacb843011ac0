//! What the command says: results on stdout, complaints in one line each on stderr, but
//! for those that show where in a file. No terminal obeys what is in it: names of devices and files are
//! somebody else's choice. What draws on a terminal makes its cells of [`printable_line`].

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

use anyhow::Context;
use serde::Serialize;
use vcc_policy::text::printable;
pub use vcc_policy::text::printable_line;

/// Why the first of what was to be said was not, but for want of a reader.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// A reader that has gone (`| head`) is no failure. Any other is told at the [`end`]: what the command
/// is doing is done all the same.
pub fn say(text: &str) {
    still_heard(text);
}

/// Whether a reader is still there who may want more.
pub fn still_heard(text: &str) -> bool {
    draw(&printable(text))
}

/// The same, with control sequences of our own between what is printable.
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

/// How a command ends that would end with `code`.
pub fn end(code: ExitCode) -> ExitCode {
    let Some(error) = LOST.get() else { return code };
    complain(&format!("cannot write to stdout: {error}"));
    ExitCode::FAILURE
}

pub fn complain(text: &str) {
    let line: Vec<&str> = text.split_whitespace().collect();
    complain_at_length(&format!("vcc: {}", line.join(" ")));
}

/// What shows its own place, and a line of it.
pub fn complain_at_length(text: &str) {
    // Of that nobody hears it, nobody can be told.
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
