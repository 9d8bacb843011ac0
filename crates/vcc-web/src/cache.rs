//! One reading of the kernel's maps for all requests within [`Limits::fresh_for`].
//!
//! [`Limits::fresh_for`]: crate::Limits::fresh_for

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{self, Arc, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::task;
use vcc_net::clock::thread_cpu_ns;

use crate::costs::Costs;
use crate::history::{History, Point};
use crate::ledger::{Activity, Ledger};
use crate::trial::{TrialView, Trials};
use crate::{Snapshot, Source};

/// A snapshot, and what changed since the previous one.
pub struct Taken {
    pub snapshot: Snapshot,
    pub activity: Activity,
    pub trial: Option<Arc<TrialView>>,
    /// The duration of the reading.
    pub took: Duration,
    /// The CPU time of the reading, without that of waiting for processes that answer late or never.
    pub worked: Duration,
    pub at: Instant,
}

/// Why a reading failed.
pub type Failure = Arc<str>;

pub struct Cache {
    source: Arc<dyn Source>,
    fresh_for: Duration,
    state: Mutex<State>,
    /// The last successful reading, for callers that do not wait.
    latest: sync::Mutex<Option<Arc<Taken>>>,
    failures: AtomicU64,
}

#[derive(Default)]
struct State {
    last: Option<(Instant, Result<Arc<Taken>, Failure>)>,
    books: Books,
}

#[derive(Default)]
struct Books {
    ledger: Ledger,
    history: History,
    trials: Trials,
    costs: Costs,
}

impl Cache {
    pub fn new(source: Arc<dyn Source>, fresh_for: Duration) -> Arc<Self> {
        let (state, latest) = (Mutex::default(), sync::Mutex::default());
        Arc::new(Self { source, fresh_for, state, latest, failures: AtomicU64::new(0) })
    }

    /// The number of failed reads.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// The latest reading that succeeded, however old.
    pub fn latest(&self) -> Option<Arc<Taken>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The latest, or a new one if that is too old.
    pub async fn get(self: &Arc<Self>) -> Result<Arc<Taken>, Failure> {
        // On a task of its own, which survives a client that disconnects: otherwise clients that
        // connect and disconnect would have the maps read once each.
        let this = self.clone();
        let got = task::spawn(async move { this.get_here().await }).await;
        got.unwrap_or_else(|e| Err(e.to_string().into()))
    }

    /// The latest ten minutes.
    pub async fn history(&self) -> Vec<Point> {
        self.state.lock().await.books.history.points()
    }

    async fn get_here(self: Arc<Self>) -> Result<Arc<Taken>, Failure> {
        let mut state = self.state.lock().await;
        if let Some((at, last)) = &state.last
            && at.elapsed() < self.fresh_for
        {
            return last.clone();
        }
        let source = self.source.clone();
        let mut books = std::mem::take(&mut state.books);
        let read = task::spawn_blocking(move || {
            let taken = catch_unwind(AssertUnwindSafe(|| take(&*source, &mut books)));
            let why = "reading the ports panicked; please report the message in the daemon's log";
            (taken.unwrap_or_else(|_| Err(why.into())), books)
        });
        let taken = match read.await {
            Ok((taken, books)) => {
                state.books = books;
                taken
            }
            Err(_) => Err("the server is being stopped".into()),
        };
        match &taken {
            Ok(taken) => {
                *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(taken.clone());
            }
            Err(_) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
        state.last = Some((Instant::now(), taken.clone()));
        taken
    }
}

fn take(source: &dyn Source, books: &mut Books) -> Result<Arc<Taken>, Failure> {
    let (begun, begun_cpu_ns) = (Instant::now(), thread_cpu_ns());
    let mut snapshot = source.snapshot().map_err(|e| Failure::from(e.to_string()))?;
    let at = Instant::now();
    let activity = books.ledger.enter(&mut snapshot, at);
    books.costs.enter(&mut snapshot.ports, at);
    books.history.enter(&snapshot, activity.all, at);
    let trial = books.trials.enter(&snapshot.flows, at);
    let worked = Duration::from_nanos(thread_cpu_ns() - begun_cpu_ns);
    Ok(Arc::new(Taken { snapshot, activity, trial, took: begun.elapsed(), worked, at }))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// The last of several snapshots that were read a second apart.
    pub fn taken(snapshots: impl IntoIterator<Item = Snapshot>) -> Taken {
        let (mut ledger, mut trials, mut costs, begin) =
            (Ledger::default(), Trials::default(), Costs::default(), Instant::now());
        let entered = snapshots.into_iter().zip(0..).map(|(mut snapshot, second)| {
            let at = begin + Duration::from_secs(second);
            let activity = ledger.enter(&mut snapshot, at);
            costs.enter(&mut snapshot.ports, at);
            let trial = trials.enter(&snapshot.flows, at);
            let took = Duration::from_millis(3);
            Taken { snapshot, activity, trial, took, worked: took, at }
        });
        entered.last().expect("a snapshot")
    }

    #[test]
    fn waiting_is_no_work() {
        struct Late;
        impl Source for Late {
            fn snapshot(&self) -> Result<Snapshot, Box<dyn std::error::Error + Send + Sync>> {
                std::thread::sleep(Duration::from_millis(200));
                Ok(crate::testing::snapshot(0))
            }
        }
        let Ok(taken) = take(&Late, &mut Books::default()) else { panic!("a reading") };
        assert!(taken.worked < taken.took / 2, "{:?} of {:?}", taken.worked, taken.took);
    }
}
