//! The output of the command: results on stdout, errors on stderr in one line each, except those
//! that quote a file. Control characters are escaped, because names of devices and files may
//! contain any. Cells of tables on a terminal are made with [`printable_line`].

use std::borrow::Cow;
use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::iter;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{OnceLock, mpsc};
use std::thread;

use anyhow::Context;
use serde::Serialize;
use vcc_policy::text::printable;
pub use vcc_policy::text::printable_line;

/// The name of the command, before each error.
static NAME: OnceLock<&str> = OnceLock::new();
/// The first error of writing to stdout, other than EPIPE.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Runs the command of this name to the end of its output, and returns its exit status.
pub fn run_as(name: &'static str, command: impl FnOnce() -> anyhow::Result<ExitCode>) -> ExitCode {
    NAME.get_or_init(|| name);
    end(command().unwrap_or_else(|error| {
        complain(&with_causes(error.as_ref()));
        ExitCode::FAILURE
    }))
}

/// The command's name.
pub fn name() -> &'static str {
    NAME.get().copied().unwrap_or("vcc")
}

/// Writes to stdout. A reader that has gone (`| head`) is not an error. Other errors are reported
/// at the end of [`run_as`], so that the command completes its work.
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
fn end(code: ExitCode) -> ExitCode {
    let Some(error) = LOST.get() else { return code };
    complain(&format!("cannot write to stdout: {error}"));
    ExitCode::FAILURE
}

/// An error and its causes in one line. Most errors of ours name their cause themselves, and it is not
/// repeated.
pub fn with_causes(error: &dyn Error) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    causes.map(ToString::to_string).fold(error.to_string(), |text, cause| {
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

pub fn complain(text: &str) {
    let line: Vec<&str> = text.split_whitespace().collect();
    complain_at_length(&format!("{}: {}", name(), line.join(" ")));
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

/// Prints like [`say_json`] an array that may be long: in parts, by all CPUs.
pub fn say_json_rows<T: Serialize + Sync>(rows: &[T]) -> anyhow::Result<()> {
    const ROWS_A_PART: usize = 1024;
    /// Parts of each worker that may wait to be printed.
    const WAITING: usize = 2;
    if rows.len() <= ROWS_A_PART {
        return say_json(&rows);
    }
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let parts = rows.len().div_ceil(ROWS_A_PART);
    thread::scope(|scope| {
        let receivers: Vec<_> = (0..workers)
            .map(|first| {
                let (sender, receiver) = mpsc::sync_channel(WAITING);
                let own = rows.chunks(ROWS_A_PART).skip(first).step_by(workers);
                scope.spawn(move || {
                    // The receiver goes when the reader of stdout has gone.
                    for part in own.map(|rows| array(rows)) {
                        if sender.send(part).is_err() {
                            break;
                        }
                    }
                });
                receiver
            })
            .collect();
        for part in 0..parts {
            let text: String = receivers[part % workers].recv()??;
            let begin = if part == 0 { "[" } else { "," };
            let end = if part + 1 == parts { "\n]\n" } else { "" };
            if !(draw(begin) && draw(elements(&text)) && draw(end)) {
                break;
            }
        }
        Ok(())
    })
}

fn array<T: Serialize>(rows: &[T]) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(rows)?;
    Ok(match printable(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => escaped,
    })
}

/// An array's text without its brackets.
fn elements(array: &str) -> &str {
    array.strip_prefix('[').and_then(|rest| rest.strip_suffix("\n]")).unwrap_or(array)
}

pub fn write_json(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_array_are_those_of_the_whole() {
        let rows: Vec<Vec<u32>> = (0..5).map(|count| (0..count).collect()).collect();
        let parts: Vec<String> = rows.chunks(2).map(|rows| array(rows).expect("JSON")).collect();
        let parts: Vec<&str> = parts.iter().map(|part| elements(part)).collect();
        assert_eq!(format!("[{}\n]", parts.join(",")), array(&rows).expect("JSON"));
    }
}
