//! A file that grows: `--follow`.

use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use vcc_capture::{Capture, Content, Interface, Packet, Problem, Replay, Treatment, What};

use super::columns::Row;
use super::file::{self, Outcome};
use super::guesses::Guesses;
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
    guesses: Guesses,
    is_over: bool,
}

/// Reads in another thread until the file ends or an interrupt comes, and calls `show` about every second,
/// and at the end, which it returns. `show` returns false to end, too.
pub fn read(
    name: &str,
    file: Box<dyn Read + Send>,
    replay: Replay,
    treatment: &Treatment,
    mut show: impl FnMut(&Outcome, &[Row]) -> bool,
) -> (Outcome, Vec<Row>) {
    let (interfaces, problems) = Default::default();
    let guesses = Guesses::default();
    let found = Found { replay, interfaces, problems, guesses, is_over: false };
    let found = Arc::new(Mutex::new(found));
    let to = found.clone();
    // It may wait for its input for ever: the end of the process ends it.
    thread::spawn(move || {
        let _end = End(&to);
        fill(&to, file);
    });
    loop {
        let is_wanted = interrupt::wait(SHOW_EVERY);
        let ((outcome, rows), is_over) = {
            let mut found = lock(&found);
            let Found { replay, interfaces, problems, guesses, is_over } = &mut *found;
            let (seen, problems) = (replay.so_far(), problems.clone());
            let read = file::outcome(name, 0, seen, interfaces, problems, treatment, guesses);
            (read, *is_over)
        };
        if !show(&outcome, &rows) || is_over || !is_wanted {
            return (outcome, rows);
        }
    }
}

fn lock(found: &Mutex<Found>) -> MutexGuard<'_, Found> {
    found.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reading thread's end, also by a panic.
struct End<'a>(&'a Mutex<Found>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        lock(self.0).is_over = true;
    }
}

fn fill(to: &Mutex<Found>, file: Box<dyn Read + Send>) {
    let content = match Content::from_file(file) {
        Ok(content) => content,
        Err(error) => return lock(to).problems.push(format!("cannot be read: {error}")),
    };
    let inside = if content.is_compressed { "decompressed, " } else { "" };
    let note = |found: &mut Found, problem: Problem| {
        // An interrupt ends the file anywhere.
        let is_cut = matches!(problem.what, What::Truncated(_) | What::Empty);
        if !(is_cut && interrupt::came()) {
            found.problems.push(format!("{inside}{problem}"));
        }
    };
    let mut capture = match Capture::open(content.reader) {
        Ok(capture) => capture,
        Err(problem) => return note(&mut lock(to), problem),
    };
    let mut packet = Packet::default();
    loop {
        let next = capture.next(&mut packet);
        let mut found = lock(to);
        let taken = match next {
            Ok(false) => return,
            Ok(true) => {
                let Found { replay, guesses, .. } = &mut *found;
                replay.take(&mut packet, &mut |passed| guesses.note(passed))
            }
            Err(problem) => Err(problem),
        };
        if let Err(problem) = taken {
            note(&mut found, problem);
        }
        if found.interfaces.len() != capture.interfaces().len() {
            found.interfaces = capture.interfaces().to_vec();
        }
    }
}
