//! What the command says: results on stdout, complaints in one line each on stderr, but
//! for those that show where in a file.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use serde::Serialize;

/// A reader that has gone (`| head`) is no failure.
pub fn say(text: &str) {
    still_heard(text);
}

/// Whether a reader is still there who may want more.
pub fn still_heard(text: &str) -> bool {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}

pub fn complain(text: &str) {
    let line: Vec<&str> = text.split_whitespace().collect();
    eprintln!("vcc: {}", line.join(" "));
}

/// What shows its own place, and a line of it.
pub fn complain_at_length(text: &str) {
    eprintln!("{text}");
}

pub fn say_json(value: &impl Serialize) -> anyhow::Result<()> {
    say(&(serde_json::to_string_pretty(value)? + "\n"));
    Ok(())
}

pub fn write_json(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
