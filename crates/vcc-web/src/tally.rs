//! Counters of requests, for the metrics.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Why a request or a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Connections,
    Time,
    Malformed,
    HeaderSize,
    Host,
    Method,
    Path,
    Query,
    Unavailable,
}

impl Refusal {
    const ALL: [(Refusal, &'static str); 9] = [
        (Self::Connections, "connections"),
        (Self::Time, "time"),
        (Self::Malformed, "malformed"),
        (Self::HeaderSize, "header_size"),
        (Self::Host, "host"),
        (Self::Method, "method"),
        (Self::Path, "path"),
        (Self::Query, "query"),
        (Self::Unavailable, "unavailable"),
    ];
}

#[derive(Default)]
pub struct Tally {
    answered: AtomicU64,
    refused: [AtomicU64; Refusal::ALL.len()],
    connections: AtomicUsize,
}

/// An open connection, until it is dropped.
pub struct Open<'a>(&'a Tally);

impl Tally {
    pub fn answer(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    pub fn refuse(&self, reason: Refusal) {
        self.refused[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn open(&self) -> Open<'_> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Open(self)
    }

    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    pub fn refused(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let count = |reason| self.refused[reason as usize].load(Ordering::Relaxed);
        Refusal::ALL.into_iter().map(move |(reason, name)| (name, count(reason)))
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
