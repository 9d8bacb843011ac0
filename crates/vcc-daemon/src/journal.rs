//! What the daemon says: one line an event, on stderr, as the journal or a terminal wants it.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use vcc_policy::text::printable_line;

/// The levels of syslog(3), which sd-daemon(3) takes as `<N>` before a line.
#[derive(Clone, Copy)]
pub(crate) enum Level {
    Error = 3,
    Warning = 4,
    Notice = 5,
    Info = 6,
}

pub(crate) fn error(text: &str) {
    say(Level::Error, text);
}

pub(crate) fn warning(text: &str) {
    say(Level::Warning, text);
}

pub(crate) fn notice(text: &str) {
    say(Level::Notice, text);
}

pub(crate) fn info(text: &str) {
    say(Level::Info, text);
}

fn say(level: Level, text: &str) {
    static FOR_JOURNAL: OnceLock<bool> = OnceLock::new();
    let for_journal = *FOR_JOURNAL
        .get_or_init(|| env::var_os("JOURNAL_STREAM").is_some() || !io::stderr().is_terminal());
    // A journal that has gone is no reason to end.
    let _ = io::stderr().lock().write_all(line(level, text, for_journal).as_bytes());
}

/// Nothing that somebody else chose, a device's name or a policy's text, begins another line.
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
