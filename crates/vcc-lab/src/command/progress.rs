//! Progress on stderr: one line that changes on a terminal, one line per run elsewhere.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write, stderr};

use vcc_command::output::printable_line;
use vcc_lab::{Event, Progress, VirtualTime};

const ERASE_LINE: &str = "\r\x1b[K";

pub struct Terminal {
    experiment: String,
    is_terminal: bool,
    /// Of the whole experiment, when it was last known.
    left_s: f64,
}

impl Terminal {
    pub fn new(experiment: &str) -> Self {
        let experiment = printable_line(experiment).into_owned();
        Self { experiment, is_terminal: stderr().is_terminal(), left_s: 0.0 }
    }

    /// A closed stderr does not stop the run.
    fn show(&self, text: &str) {
        let mut stderr = stderr().lock();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}

impl Progress for Terminal {
    fn note(&mut self, event: &Event) {
        let case = printable_line(match event {
            Event::Tick { case, .. } | Event::Done { case, .. } => case,
        });
        if let Event::Tick { left_s, .. } = event {
            self.left_s = *left_s;
        }
        match event {
            Event::Tick { .. } if !self.is_terminal => {}
            Event::Tick { run, runs, left_s, virtual_time, .. } => {
                let far = virtual_time.as_ref().map(far).unwrap_or_default();
                let left = left(*left_s);
                let experiment = &self.experiment;
                self.show(&format!(
                    "{ERASE_LINE}{experiment} {case} {run}/{runs}: {far}{left} left"
                ));
            }
            Event::Done { run, runs, valid, is_repeated, reasons, metrics, .. } => {
                let outcome = outcome(*valid, *is_repeated, reasons, metrics);
                let line = format!("{} {case} {run}/{runs}: {outcome}", self.experiment);
                match self.is_terminal {
                    true => self.show(&format!("{ERASE_LINE}{line}\n")),
                    // No line of its own shows it.
                    false => self.show(&format!("{line}{}\n", to_come(self.left_s))),
                }
            }
        }
    }
}

/// Erases an unfinished line.
impl Drop for Terminal {
    fn drop(&mut self) {
        if self.is_terminal {
            self.show(ERASE_LINE);
        }
    }
}

/// What came of a run that is over.
fn outcome(
    is_valid: bool,
    is_repeated: bool,
    reasons: &[String],
    metrics: &BTreeMap<String, f64>,
) -> String {
    if is_valid {
        let figures = metrics.iter().map(|(name, value)| format!("{name} {value:.3}"));
        return figures.collect::<Vec<_>>().join(", ");
    }
    let next = if is_repeated { "so it is repeated" } else { "and not repeated" };
    format!("not valid, {next}: {}", reasons.join("; "))
}

/// Progress of a run in virtual time.
fn far(time: &VirtualTime) -> String {
    let VirtualTime { now_s, end_s, wall_s, wall_s_each } = time;
    format!("{now_s:.2} of {end_s:.2} virtual s in {wall_s:.0} s, {wall_s_each:.1} s each, ")
}

/// Nothing where the end is near.
fn to_come(left_s: f64) -> String {
    const NEAR_S: f64 = 5.0;
    if left_s < NEAR_S { String::new() } else { format!("; {} left", left(left_s)) }
}

fn left(seconds: f64) -> String {
    let seconds = seconds.max(0.0).ceil() as u64;
    match seconds / 60 {
        0 => format!("{seconds} s"),
        minutes @ 1..60 => format!("{minutes} min {} s", seconds % 60),
        minutes => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_in_virtual_time_tells_both_times_and_their_rate() {
        let time = VirtualTime { now_s: 0.844, end_s: 1.525, wall_s: 5.2, wall_s_each: 6.14 };
        assert_eq!(far(&time), "0.84 of 1.52 virtual s in 5 s, 6.1 s each, ");
    }

    #[test]
    fn what_is_left_reads_like_a_clock() {
        let text = [-1.0, 0.2, 59.5, 61.0, 3600.0].map(left);
        assert_eq!(text, ["0 s", "1 s", "1 min 0 s", "1 min 1 s", "1 h 0 min"]);
        assert_eq!([1.5, 74.0].map(to_come), ["", "; 1 min 14 s left"]);
    }

    #[test]
    fn an_invalid_run_says_whether_it_is_repeated() {
        let outcome = |is_valid, is_repeated| {
            let reasons: &[String] = if is_valid { &[] } else { &["late".into(), "lost".into()] };
            let metrics = BTreeMap::from([("a".into(), 1.0), ("b".into(), 0.25)]);
            outcome(is_valid, is_repeated, reasons, &metrics)
        };
        assert_eq!(outcome(true, false), "a 1.000, b 0.250");
        assert_eq!(outcome(false, true), "not valid, so it is repeated: late; lost");
        assert_eq!(outcome(false, false), "not valid, and not repeated: late; lost");
    }
}
