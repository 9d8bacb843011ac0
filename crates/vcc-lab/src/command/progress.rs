//! Progress on stderr: one line that changes on a terminal, one line per run elsewhere.

use std::io::{IsTerminal, Write, stderr};

use vcc_command::output::printable_line;
use vcc_lab::{Event, Progress, VirtualTime};

const ERASE_LINE: &str = "\r\x1b[K";

pub struct Terminal {
    experiment: String,
    is_terminal: bool,
}

impl Terminal {
    pub fn new(experiment: &str) -> Self {
        let experiment = printable_line(experiment).into_owned();
        Self { experiment, is_terminal: stderr().is_terminal() }
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
                let erase = if self.is_terminal { ERASE_LINE } else { "" };
                let text = if *valid {
                    let figures = metrics.iter().map(|(name, value)| format!("{name} {value:.3}"));
                    figures.collect::<Vec<_>>().join(", ")
                } else {
                    let next = if *is_repeated { ", another run takes its place" } else { "" };
                    format!("not valid{next}: {}", reasons.join("; "))
                };
                self.show(&format!("{erase}{} {case} {run}/{runs}: {text}\n", self.experiment));
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

/// Progress of a run in virtual time.
fn far(time: &VirtualTime) -> String {
    let VirtualTime { now_s, end_s, wall_s, wall_s_each } = time;
    format!("{now_s:.2} of {end_s:.2} virtual s in {wall_s:.0} s, {wall_s_each:.1} s each, ")
}

fn left(seconds: f64) -> String {
    let seconds = seconds.max(0.0).ceil() as u64;
    match seconds / 60 {
        0 => format!("{seconds} s"),
        minutes => format!("{minutes} min {} s", seconds % 60),
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
        assert_eq!(text, ["0 s", "1 s", "1 min 0 s", "1 min 1 s", "60 min 0 s"]);
    }
}
