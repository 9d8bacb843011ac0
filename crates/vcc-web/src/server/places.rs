//! The limit of open connections, and which of them gives way when it is reached.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

pub(super) struct Places {
    max: usize,
    /// An answer that has taken longer gives way when all places are taken.
    answered_within: Duration,
    /// In the order in which they were taken.
    taken: Mutex<VecDeque<Arc<Occupant>>>,
}

/// A connection in its place.
pub(super) struct Occupant {
    since: Instant,
    /// It has sent a whole request.
    has_asked: AtomicBool,
    /// Of the task that serves it.
    task: OnceLock<AbortHandle>,
}

/// A place, until it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    occupant: Arc<Occupant>,
}

impl Places {
    pub(super) fn new(max: usize, answered_within: Duration) -> Arc<Self> {
        Arc::new(Self { max, answered_within, taken: Mutex::default() })
    }

    /// A place; the oldest connection that has not asked yet gives way to it, or the oldest whose answer
    /// takes too long. None if there is none of either. The other value: did one give way?
    pub(super) fn take(self: &Arc<Self>) -> (Option<Place>, bool) {
        let mut taken = self.lock();
        let mut gave_way = false;
        if taken.len() >= self.max {
            let unasked = taken.iter().position(|it| !it.has_asked.load(Ordering::Relaxed));
            let slow = || taken.iter().position(|it| it.since.elapsed() >= self.answered_within);
            let Some(place) = unasked.or_else(slow) else { return (None, false) };
            let oldest = taken.remove(place).expect("its position");
            if let Some(task) = oldest.task.get() {
                task.abort();
            }
            gave_way = true;
        }
        let occupant = Arc::new(Occupant {
            since: Instant::now(),
            has_asked: AtomicBool::new(false),
            task: OnceLock::new(),
        });
        taken.push_back(occupant.clone());
        (Some(Place { places: self.clone(), occupant }), gave_way)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Occupant>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    pub(super) fn occupant(&self) -> Arc<Occupant> {
        self.occupant.clone()
    }
}

impl Occupant {
    pub(super) fn is_served_by(&self, task: AbortHandle) {
        let _ = self.task.set(task);
    }

    pub(super) fn has_asked(&self) {
        self.has_asked.store(true, Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().retain(|it| !Arc::ptr_eq(it, &self.occupant));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_has_not_asked_gives_way_and_no_other() {
        let places = Places::new(2, Duration::from_secs(3600));
        let (first, second) = (places.take().0.expect("free"), places.take().0.expect("free"));
        first.occupant.has_asked();
        let (third, gave_way) = places.take();
        assert!(gave_way, "the second");
        let third = third.expect("its place");
        drop(second);
        third.occupant.has_asked();
        assert!(places.take().0.is_none(), "both are being answered");
        drop(first);
        assert!(matches!(places.take(), (Some(_), false)));
    }

    #[test]
    fn an_answer_that_takes_too_long_gives_way() {
        let places = Places::new(1, Duration::ZERO);
        let first = places.take().0.expect("free");
        first.occupant.has_asked();
        assert!(matches!(places.take(), (Some(_), true)));
    }
}
