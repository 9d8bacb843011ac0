//! The table repeatedly: redrawn in place on a terminal, one after another elsewhere.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use ratatui::crossterm::terminal;
use serde::Serialize;
use vcc_command::output;
use vcc_view::{FlowView, READ_EVERY, Sampler, Snapshot};

use super::table::table;
use super::{Arguments, chosen};
use crate::commands::tenants::Tenants;
use crate::interrupt;

#[derive(Serialize)]
struct Document<'a> {
    /// Since 1970.
    time_s: f64,
    flows: &'a [FlowView],
}

pub fn run(arguments: &Arguments, sampler: &mut Sampler, interval: Duration) -> anyhow::Result<()> {
    interrupt::listen()?;
    let is_terminal = io::stdout().is_terminal() && !arguments.json;
    let mut screen = Screen::default();
    let mut is_first = true;
    let mut next = Instant::now();
    let mut tenants = Tenants::ask();
    // The first table has rates, too.
    sampler.note()?;
    let mut pause = interval.min(READ_EVERY);
    loop {
        next += pause;
        if !wait(sampler, next)? {
            return Ok(());
        }
        let mut snapshot = chosen(arguments, sampler.snapshot()?);
        tenants.name(&mut snapshot.flows);
        let is_heard = if arguments.json {
            output::still_heard(&document(&snapshot)?)
        } else if is_terminal {
            output::draw(&screen.redraw(&table(&snapshot.flows, arguments.wide)))
        } else {
            let between = if is_first { "" } else { "\n" };
            output::still_heard(&(between.to_owned() + &table(&snapshot.flows, arguments.wide)))
        };
        if !is_heard {
            return Ok(());
        }
        is_first = false;
        pause = interval;
        // Missed intervals are not made up for.
        next = next.max(Instant::now().checked_sub(interval).unwrap_or(next));
    }
}

/// Waits, and reads as often as the rates need it. False after an interrupt.
fn wait(sampler: &mut Sampler, until: Instant) -> anyhow::Result<bool> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if !interrupt::wait(sampler.pause(left)) {
            return Ok(false);
        }
        if Instant::now() >= until {
            return Ok(true);
        }
        sampler.keep_up()?;
    }
}

fn document(snapshot: &Snapshot) -> anyhow::Result<String> {
    let document = Document { time_s: snapshot.unix_time_s, flows: &snapshot.flows };
    Ok(serde_json::to_string(&document)? + "\n")
}

/// The part of the terminal that is redrawn.
#[derive(Default)]
pub struct Screen {
    drawn_lines: usize,
    size: Option<(u16, u16)>,
}

impl Screen {
    pub fn redraw(&mut self, text: &str) -> String {
        let size = terminal::size().unwrap_or((80, 24));
        let (columns, rows) = (usize::from(size.0).max(1), usize::from(size.1).max(2));
        // One write, with each line cleared behind its end, does not flicker.
        let mut drawn = String::new();
        if self.size.is_some_and(|before| before != size) {
            // A narrower terminal has wrapped our lines: their places are unknown.
            drawn.push_str("\x1b[2J\x1b[H");
        } else if self.drawn_lines > 0 {
            drawn.push_str(&format!("\x1b[{}F", self.drawn_lines));
        }
        let lines = fitting(text, columns, rows - 1);
        for line in &lines {
            drawn.push_str(line);
            drawn.push_str("\x1b[K\n");
        }
        drawn.push_str("\x1b[J");
        (self.drawn_lines, self.size) = (lines.len(), Some(size));
        drawn
    }
}

/// The lines that fit; the last one counts those that do not.
fn fitting(text: &str, columns: usize, rows: usize) -> Vec<String> {
    let cut = |line: &str| line.chars().take(columns).collect::<String>();
    let lines: Vec<String> = text.lines().map(cut).collect();
    if lines.len() <= rows {
        return lines;
    }
    let kept = rows.saturating_sub(1);
    let more = format!("... and {} more: use --top, a filter, or `vcc top`", lines.len() - kept);
    lines.into_iter().take(kept).chain([cut(&more)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        let text = "HEADER\none\ntwo\nthree\n";
        assert_eq!(fitting(text, 80, 4), ["HEADER", "one", "two", "three"]);
        let cut = fitting(text, 9, 3);
        assert_eq!(cut, ["HEADER", "one", "... and 2"]);
        assert_eq!(fitting(text, 3, 4)[0], "HEA");
    }

    #[test]
    fn a_table_is_drawn_over_the_one_before() {
        let mut screen = Screen::default();
        assert_eq!(screen.redraw("a\nb\n"), "a\x1b[K\nb\x1b[K\n\x1b[J");
        assert!(screen.redraw("c\n").starts_with("\x1b[2Fc\x1b[K\n"));
        assert!(screen.redraw("d\n").starts_with("\x1b[1Fd"));
    }
}
