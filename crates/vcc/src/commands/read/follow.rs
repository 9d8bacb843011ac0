//! A file that grows: `--follow`.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use vcc_capture::{Capture, Interface, Packet, Replay, Treatment};

use super::columns::Row;
use super::file::{self, Input, Outcome};
use crate::interrupt;

/// How often the end of the file is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How often what was read is shown.
const SHOW_EVERY: Duration = Duration::from_secs(1);

/// A file whose end is waited at, until an interrupt.
pub struct Growing(pub File);

impl Read for Growing {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(to)? {
                0 if !to.is_empty() && interrupt::wait(LOOK) => {}
                got => return Ok(got),
            }
        }
    }
}

/// What the thread that reads has found so far.
struct Found {
    replay: Replay,
    interfaces: Vec<Interface>,
    problems: Vec<String>,
    is_over: bool,
}

/// Reads in another thread until the file ends or an interrupt comes, and calls `show` about every second,
/// and at the end, which it returns. `show` returns false to end, too.
pub fn read(
    input: Input<'static>,
    replay: Replay,
    treatment: &Treatment,
    mut show: impl FnMut(&Outcome, &[Row]) -> bool,
) -> (Outcome, Vec<Row>) {
    let Input { name, index, content } = input;
    let (interfaces, problems) = Default::default();
    let found = Found { replay, interfaces, problems, is_over: false };
    let found = Arc::new(Mutex::new(found));
    let to = found.clone();
    // It may wait for its input for ever: the end of the process ends it.
    thread::spawn(move || fill(&to, content.reader));
    loop {
        let is_wanted = interrupt::wait(SHOW_EVERY);
        let (seen, interfaces, problems, is_over) = {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            let Found { replay, interfaces, problems, is_over } = &mut *found;
            (replay.so_far(), interfaces.clone(), problems.clone(), *is_over)
        };
        let (outcome, rows) = file::outcome(&name, index, seen, &interfaces, problems, treatment);
        if !show(&outcome, &rows) || is_over || !is_wanted {
            return (outcome, rows);
        }
    }
}

fn fill(to: &Mutex<Found>, reader: impl BufRead) {
    let found = || to.lock().unwrap_or_else(PoisonError::into_inner);
    match Capture::open(reader) {
        Err(problem) => found().problems.push(problem.to_string()),
        Ok(mut capture) => {
            let mut packet = Packet::default();
            loop {
                let next = capture.next(&mut packet);
                let mut found = found();
                let taken = match next {
                    Ok(false) => break,
                    Ok(true) => found.replay.take(&mut packet, &mut |_| {}),
                    Err(problem) => Err(problem),
                };
                found.problems.extend(taken.err().map(|problem| problem.to_string()));
                if found.interfaces.len() != capture.interfaces().len() {
                    found.interfaces = capture.interfaces().to_vec();
                }
            }
        }
    }
    found().is_over = true;
}
