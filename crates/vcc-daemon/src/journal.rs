//! The daemon's log: events with a level, some of them about a port.
//!
//! In the journal, the level is the field PRIORITY, and the port is VCC_DEVICE and VCC_TENANT. Without a journal,
//! an event is a line on stderr, in the format of a terminal or of sd-daemon(3).

use std::env;
use std::fmt::{self, Debug, Display, Write as _};
use std::fs::File;
use std::io::{self, IsTerminal, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tracing::field::{Field, Visit};
use tracing::subscriber::set_global_default;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry;
use vcc_policy::text::printable_line;

/// The level of an event, by syslog(3), or up to which level events are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    Error = 3,
    Warning = 4,
    Notice = 5,
    #[default]
    Info = 6,
    Debug = 7,
}

impl LogLevel {
    pub const ALL: [Self; 5] = [Self::Error, Self::Warning, Self::Notice, Self::Info, Self::Debug];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Notice => "notice",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }

    /// As tracing-journald translates it back: the five levels of tracing become PRIORITY 3 to 7.
    fn of(level: Level) -> Self {
        match level {
            Level::ERROR => Self::Error,
            Level::WARN => Self::Warning,
            Level::INFO => Self::Notice,
            Level::DEBUG => Self::Info,
            Level::TRACE => Self::Debug,
        }
    }
}

impl Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LogLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|level| level.name() == text);
        found.ok_or_else(|| format!("`{text}` is no level of the log"))
    }
}

/// That in force, as its number.
static LEVEL: AtomicU8 = AtomicU8::new(LogLevel::Info as u8);

pub(crate) fn level() -> LogLevel {
    let level = LEVEL.load(Relaxed);
    LogLevel::ALL.into_iter().find(|it| *it as u8 == level).unwrap_or_default()
}

pub(crate) fn set_level(level: LogLevel) {
    LEVEL.store(level as u8, Relaxed);
}

/// The port that an event is about.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub device: &'a str,
    pub tenant: Option<&'a str>,
}

impl<'a> From<&'a str> for About<'a> {
    fn from(device: &'a str) -> Self {
        Self { device, tenant: None }
    }
}

impl<'a> From<&'a String> for About<'a> {
    fn from(device: &'a String) -> Self {
        device.as_str().into()
    }
}

/// An event: `event!(LEVEL, "text")`, or `event!(LEVEL, port = device, "text")`.
macro_rules! event {
    ($level:ident, port = $port:expr, $($text:tt)+) => {{
        let about = $crate::journal::About::from($port);
        tracing::event!(
            tracing::Level::$level,
            device = about.device,
            tenant = about.tenant,
            "{}",
            $crate::journal::Line(format_args!($($text)+))
        );
    }};
    ($level:ident, $($text:tt)+) => {
        tracing::event!(
            tracing::Level::$level, "{}", $crate::journal::Line(format_args!($($text)+))
        )
    };
}

macro_rules! error {
    ($($event:tt)+) => { $crate::journal::event!(ERROR, $($event)+) };
}

macro_rules! warning {
    ($($event:tt)+) => { $crate::journal::event!(WARN, $($event)+) };
}

macro_rules! notice {
    ($($event:tt)+) => { $crate::journal::event!(INFO, $($event)+) };
}

macro_rules! info {
    ($($event:tt)+) => { $crate::journal::event!(DEBUG, $($event)+) };
}

macro_rules! debug {
    ($($event:tt)+) => { $crate::journal::event!(TRACE, $($event)+) };
}

pub(crate) use {debug, error, event, info, notice, warning};

/// Escapes control characters, so that no device name or policy text can forge a line.
pub(crate) struct Line<T>(pub T);

impl<T: Display> Display for Line<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable_line(&self.0.to_string()))
    }
}

/// Warns when `what` begins to fail, or fails for another reason. `logged`: the reason logged last.
pub(crate) fn failure<E: Display>(logged: &mut Option<String>, what: &str, result: Result<(), E>) {
    if let Some(why) = new_failure(logged, result) {
        warning!("{what}: {why}");
    }
}

/// The reason of a failure, unless it is `logged` already.
pub(crate) fn new_failure<E: Display>(
    logged: &mut Option<String>,
    result: Result<(), E>,
) -> Option<String> {
    let why = result.err().map(|error| error.to_string());
    let is_new = *logged != why;
    logged.clone_from(&why);
    why.filter(|_| is_new)
}

/// Readings and checks that take longer are worth an event.
const SLOW: Duration = Duration::from_millis(10);

/// An event if that took long.
pub(crate) fn if_slow(doing: impl Display, began: Instant) {
    let took = began.elapsed();
    if took > SLOW {
        debug!("{doing} took {} ms", took.as_millis());
    }
}

/// Logs events from now on.
pub(crate) fn begin(level: LogLevel) {
    set_level(level);
    // Libraries have events, too, which mean nothing to an operator.
    let filter = dynamic_filter_fn(|metadata, _| {
        metadata.target().starts_with(env!("CARGO_CRATE_NAME"))
            && LogLevel::of(*metadata.level()) as u8 <= LEVEL.load(Relaxed)
    });
    let log = registry().with(filter);
    let journal = if is_journal() { tracing_journald::layer().ok() } else { None };
    // Another log in this process stays.
    let _ = match journal {
        Some(journal) => {
            set_global_default(log.with(journal.with_field_prefix(Some("VCC".into()))))
        }
        None => set_global_default(log.with(Lines::new())),
    };
}

/// Whether stderr leads to the journal, as systemd.exec(5) has it found out.
fn is_journal() -> bool {
    let Some(stream) = env::var_os("JOURNAL_STREAM") else { return false };
    let stderr = io::stderr().as_fd().try_clone_to_owned().map(File::from);
    let file = stderr.and_then(|stderr| stderr.metadata());
    file.is_ok_and(|file| stream.to_str() == Some(&*format!("{}:{}", file.dev(), file.ino())))
}

/// Writes a line per event on stderr.
struct Lines {
    /// With levels as prefixes `<N>`, as the journal reads them from a pipe.
    for_journal: bool,
}

impl Lines {
    fn new() -> Self {
        let for_journal = env::var_os("JOURNAL_STREAM").is_some() || !io::stderr().is_terminal();
        Self { for_journal }
    }

    fn line(&self, level: LogLevel, text: &str) -> String {
        match level {
            _ if self.for_journal => format!("<{}>{text}\n", level as u8),
            LogLevel::Error => format!("error: {text}\n"),
            LogLevel::Warning => format!("warning: {text}\n"),
            LogLevel::Notice | LogLevel::Info => format!("{text}\n"),
            LogLevel::Debug => format!("debug: {text}\n"),
        }
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let line = self.line(LogLevel::of(*event.metadata().level()), &text.0);
        // The daemon keeps running without a log.
        let _ = io::stderr().lock().write_all(line.as_bytes());
    }
}

/// The text of an event, without its fields.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            // Writing to a String cannot fail.
            let _ = write!(self.0, "{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line() {
        let line =
            |level, text, for_journal| Lines { for_journal }.line(level, &Line(text).to_string());
        let warning = LogLevel::Warning;
        assert_eq!(line(warning, "a\n<0>b\u{1b}", true), "<4>a\\u000a<0>b\\u001b\n");
        assert_eq!(line(warning, "a\tb", false), "warning: a\\u0009b\n");
        assert_eq!(line(LogLevel::Info, "a", false), "a\n");
    }

    #[test]
    fn names_lead_back_to_levels() {
        for level in LogLevel::ALL {
            assert_eq!(level.name().parse(), Ok(level));
            assert_eq!(serde_json::to_value(level).expect("JSON"), level.name());
        }
        assert!("loud".parse::<LogLevel>().is_err());
        assert!(LogLevel::ALL.is_sorted());
    }
}
