//! The daemon's log: one line per event on stderr, in the format of the journal or of a terminal.

use std::env;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use vcc_policy::text::printable_line;

/// The levels of syslog(3); sd-daemon(3) takes them as a prefix `<N>`.
#[derive(Clone, Copy)]
pub(crate) enum Level {
    Error = 3,
    Warning = 4,
    Notice = 5,
    Info = 6,
}

pub(crate) fn error(text: &str) {
    write(Level::Error, text);
}

pub(crate) fn warning(text: &str) {
    write(Level::Warning, text);
}

pub(crate) fn notice(text: &str) {
    write(Level::Notice, text);
}

pub(crate) fn info(text: &str) {
    write(Level::Info, text);
}

/// Warns when `what` begins to fail, or fails for another reason. `logged`: the reason logged last.
pub(crate) fn failure<E: Display>(logged: &mut Option<String>, what: &str, result: Result<(), E>) {
    let why = result.err().map(|error| error.to_string());
    if let Some(why) = why.as_ref().filter(|why| logged.as_ref() != Some(*why)) {
        warning(&format!("{what}: {why}"));
    }
    *logged = why;
}

fn write(level: Level, text: &str) {
    static FOR_JOURNAL: OnceLock<bool> = OnceLock::new();
    let for_journal = *FOR_JOURNAL
        .get_or_init(|| env::var_os("JOURNAL_STREAM").is_some() || !io::stderr().is_terminal());
    // The daemon keeps running without a journal.
    let _ = io::stderr().lock().write_all(line(level, text, for_journal).as_bytes());
}

/// Escapes control characters, so that no device name or policy text can forge a line.
fn line(level: Level, text: &str, for_journal: bool) -> String {
    let text = printable_line(text);
    match level {
        _ if for_journal => format!("<{}>{text}\n", level as u8),
        Level::Error => format!("error: {text}\n"),
        Level::Warning => format!("warning: {text}\n"),
        Level::Notice | Level::Info => format!("{text}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(line(Level::Warning, "a\n<0>b\u{1b}", true), "<4>a\\u000a<0>b\\u001b\n");
        assert_eq!(line(Level::Warning, "a\tb", false), "warning: a\\u0009b\n");
        assert_eq!(line(Level::Info, "a", false), "a\n");
    }
}
