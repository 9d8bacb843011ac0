//! A record of each connection when it has ended, as a line of JSON in a file.
//!
//! A closed connection stays in the table of its port for ten seconds, or for one where the table is crowded.
//! The table is read more often than that. So nothing is done for a segment, and a record costs part of a
//! read. A connection that has gone without being seen closed is recorded as it was seen last.

mod file;
mod record;
mod watched;

use std::collections::HashSet;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use vcc_view::READ_EVERY;
use vcc_web::{Snapshot, Source as _};

use crate::http::Source;
use crate::record_counts::{Counts, State};
use crate::{Error, Result, journal};
use file::Records;
pub use file::{RecordsOptions, Target, renamed};
pub use record::{End, Record};
use watched::{Read, Watched};

/// The thread that records. When it is dropped, it reads once more, and ends.
pub(crate) struct Recording {
    /// Closed to end it.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Recording {
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn start(options: &RecordsOptions, state: &State, source: Source) -> Result<Self> {
        let failed =
            |e: io::Error| Error::system(format!("write records to {}", options.target), e);
        let records = Records::open(options).map_err(failed)?;
        let share = options.share;
        let (stop, stopped) = mpsc::channel();
        let to = state.counts();
        // The ports do not wait until the end of a large file is read.
        let work = move || {
            let mut logged = None;
            let latest = records.latest();
            let earlier = latest.as_ref().ok().cloned().flatten();
            let watched = Watched::new(share, earlier);
            journal::failure(&mut logged, "connections are not recorded", latest.map(drop));
            Work { source, watched, records, counts: to, logged }.run(&stopped);
        };
        let thread = thread::Builder::new().name("records".into()).spawn(work);
        let thread =
            thread.map_err(|e| Error::system("start the thread that records connections", e))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

struct Work {
    source: Source,
    watched: Watched,
    records: Records,
    counts: Arc<Counts>,
    /// The reason why tables cannot be read that was logged last.
    logged: Option<String>,
}

impl Work {
    fn run(mut self, stopped: &Receiver<()>) {
        loop {
            let begun = Instant::now();
            let read = self.source.snapshot().map(|snapshot| self.note(&snapshot));
            journal::failure(&mut self.logged, "connections are not recorded", read);
            let pause = READ_EVERY.saturating_sub(begun.elapsed());
            if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                // What has ended since then has no other record.
                if let Ok(snapshot) = self.source.snapshot() {
                    self.note(&snapshot);
                }
                return;
            }
        }
    }

    fn note(&mut self, snapshot: &Snapshot) {
        let unread = snapshot.ports.iter().filter(|port| port.failure.is_some());
        let unread: HashSet<String> = unread.map(|port| port.port.clone()).collect();
        let now = vcc_port::monotonic();
        let Self { watched, records, .. } = self;
        let read = Read { flows: &snapshot.flows, unread, now };
        watched.read(read, &mut |record| records.write(&record));
        let (written, lost) = records.flush();
        self.counts.written.fetch_add(written, Relaxed);
        self.counts.lost.fetch_add(lost, Relaxed);
        let failure = records.failure().map(str::to_owned);
        *self.counts.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }
}
