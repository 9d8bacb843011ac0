//! A lock that passes to a waiting thread next, where one thread takes it again and again.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A [`Mutex`] goes to a thread that is running rather than to one that has to wake up first.
pub(crate) struct Turns<T: ?Sized> {
    /// Held by the next, while it waits.
    next: Mutex<()>,
    value: Mutex<T>,
}

impl<T> Turns<T> {
    pub(crate) fn new(value: T) -> Self {
        Turns { next: Mutex::new(()), value: Mutex::new(value) }
    }
}

impl<T: ?Sized> Turns<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        let _next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::hint;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn whoever_waits_is_next_though_another_never_pauses() {
        const SAMPLES: usize = 51;
        let (turns, taken, ends) = (Turns::new(()), AtomicU64::new(0), AtomicBool::new(false));
        let taken_now = || taken.load(Ordering::SeqCst);
        let mut missed: Vec<u64> = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(Ordering::SeqCst) {
                    let _turn = turns.lock();
                    taken.fetch_add(1, Ordering::SeqCst);
                    // Longer than whoever waits spins.
                    thread::sleep(Duration::from_millis(1));
                }
            });
            while missed.len() < SAMPLES {
                let before = taken_now();
                while taken_now() == before {
                    hint::spin_loop();
                }
                let before = taken_now();
                let turn = turns.lock();
                missed.push(taken_now() - before);
                drop(turn);
            }
            ends.store(true, Ordering::SeqCst);
        });
        // A thread may lose its processor just before it waits, but seldom does.
        missed.sort_unstable();
        assert_eq!(missed[SAMPLES / 2], 0, "turns of the other while one waited: {missed:?}");
    }
}
