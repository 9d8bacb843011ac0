//! A record of each connection when it has ended, as a line of JSON in a file.
//!
//! A closed connection stays in the table of its port for ten seconds, or for one where the table is crowded.
//! The table is read more often than that. So nothing is done for a segment, and a record costs part of a
//! read. A connection that has gone without being seen closed is recorded as it was seen last.

mod file;
mod record;
mod watched;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{io, thread};

use vcc_web::{Snapshot, Source as _};

use crate::http::Source;
use crate::{Error, Result, journal};
use file::Records;
pub use file::{RecordsOptions, Target};
pub use record::{End, Record};
use watched::Watched;

/// Less than the time for which a closed connection stays in its table.
const EVERY: Duration = Duration::from_secs(1);
/// The same in a table that is crowded, or may soon be.
const EVERY_CROWDED: Duration = Duration::from_millis(600);
/// Of a table. It is crowded from a half on (engine/expiry.h).
const CROWDED_PART: f64 = 0.375;

/// What was done since the daemon began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    written: AtomicU64,
    lost: AtomicU64,
}

impl Tally {
    pub(crate) fn written(&self) -> u64 {
        self.0.written.load(Relaxed)
    }

    /// Records that could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.0.lost.load(Relaxed)
    }
}

/// Records on a thread of its own until the process ends.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn start(options: &RecordsOptions, source: Source) -> Result<Tally> {
    let failed = |e: io::Error| Error::system(format!("write records to {}", options.target), e);
    let mut records = Records::open(options).map_err(failed)?;
    let tally = Tally::default();
    let counts = tally.clone();
    let mut watched = Watched::new(options.share);
    let work = move || {
        let mut logged = None;
        loop {
            let begun = Instant::now();
            let read = source.snapshot();
            let mut every = EVERY;
            if let Ok(snapshot) = &read {
                note(&mut watched, &mut records, snapshot, &counts);
                if is_crowded(snapshot) {
                    every = EVERY_CROWDED;
                }
            }
            journal::failure(&mut logged, "connections are not recorded", read.map(drop));
            thread::sleep(every.saturating_sub(begun.elapsed()));
        }
    };
    let thread = thread::Builder::new().name("records".into()).spawn(work);
    thread.map_err(|e| Error::system("start the thread that records connections", e))?;
    Ok(tally)
}

fn note(watched: &mut Watched, records: &mut Records, snapshot: &Snapshot, tally: &Tally) {
    // The connections of a port that cannot be read are not gone.
    let is_complete = snapshot.ports.iter().all(|port| port.failure.is_none());
    let now = vcc_port::monotonic();
    watched.read(&snapshot.flows, is_complete, now, &mut |record| records.write(&record));
    let (written, lost) = records.flush();
    tally.0.written.fetch_add(written, Relaxed);
    tally.0.lost.fetch_add(lost, Relaxed);
}

fn is_crowded(snapshot: &Snapshot) -> bool {
    let mut flows = vec![0_u32; snapshot.ports.len()];
    for flow in &snapshot.flows {
        if let Some(count) = flows.get_mut(flow.port_index) {
            *count += 1;
        }
    }
    let most = snapshot.ports.iter().map(|port| port.max_flows.unwrap_or(u32::MAX));
    flows
        .into_iter()
        .zip(most)
        .any(|(flows, most)| f64::from(flows) > CROWDED_PART * f64::from(most))
}
