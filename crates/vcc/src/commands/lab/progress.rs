//! How far a run is, on stderr: one line that changes on a terminal, one line a run elsewhere.

use std::io::{IsTerminal, Write, stderr};

use vcc_lab::{Event, Progress};

const ERASE_LINE: &str = "\r\x1b[K";

pub struct Terminal {
    experiment: String,
    is_terminal: bool,
}

impl Terminal {
    pub fn new(experiment: &str) -> Self {
        Self { experiment: experiment.into(), is_terminal: stderr().is_terminal() }
    }

    /// Nobody reading it is no reason to stop.
    fn show(&self, text: &str) {
        let mut stderr = stderr().lock();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}

impl Progress for Terminal {
    fn note(&mut self, event: &Event) {
        match event {
            Event::Tick { .. } if !self.is_terminal => {}
            Event::Tick { case, run, runs, left_s } => {
                let left = left(*left_s);
                let experiment = &self.experiment;
                self.show(&format!("{ERASE_LINE}{experiment} {case} {run}/{runs}: {left} left"));
            }
            Event::Done { case, run, runs, valid, reasons, metrics } => {
                let erase = if self.is_terminal { ERASE_LINE } else { "" };
                let said = if *valid {
                    let figures = metrics.iter().map(|(name, value)| format!("{name} {value:.3}"));
                    figures.collect::<Vec<_>>().join(", ")
                } else {
                    format!("does not count: {}", reasons.join("; "))
                };
                self.show(&format!("{erase}{} {case} {run}/{runs}: {said}\n", self.experiment));
            }
        }
    }
}

/// What was begun on the line does not stay there.
impl Drop for Terminal {
    fn drop(&mut self) {
        if self.is_terminal {
            self.show(ERASE_LINE);
        }
    }
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
    fn what_is_left_reads_like_a_clock() {
        let said = [-1.0, 0.2, 59.5, 61.0, 3600.0].map(left);
        assert_eq!(said, ["0 s", "1 s", "1 min 0 s", "1 min 1 s", "60 min 0 s"]);
    }
}
