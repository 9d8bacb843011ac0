//! Pauses between attempts, and how long an attempt may take.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Grows with each failure, and differs between nodes: after an outage of the API server not all of them
/// come at once.
pub struct Pause(Duration);

impl Pause {
    const FIRST: Duration = Duration::from_secs(1);
    const LAST: Duration = Duration::from_secs(30);

    pub fn new() -> Self {
        Self(Self::FIRST)
    }

    pub fn reset(&mut self) {
        self.0 = Self::FIRST;
    }

    pub fn next(&mut self) -> Duration {
        let now = self.0;
        self.0 = (now * 2).min(Self::LAST);
        spread(now)
    }
}

/// From half as long to one and a half times as long.
pub fn spread(duration: Duration) -> Duration {
    duration / 2 + share_of(duration)
}

/// From nothing to as long.
pub fn share_of(duration: Duration) -> Duration {
    // Each state is keyed anew.
    let random = RandomState::new().build_hasher().finish();
    duration.mul_f64(random as f64 / u64::MAX as f64)
}

/// A server that takes longer does not answer.
const LIMIT: Duration = Duration::from_secs(30);

/// The result of a request, if there is one in time.
pub async fn within_limit<T>(request: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    within(LIMIT, request).await
}

pub async fn within<T>(
    limit: Duration,
    request: impl Future<Output = kube::Result<T>>,
) -> kube::Result<T> {
    tokio::time::timeout(limit, request).await.unwrap_or_else(|_| {
        let seconds = limit.as_secs();
        Err(kube::Error::Service(format!("no answer within {seconds} s").into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_limit_and_are_spread() {
        let mut pause = Pause::new();
        let mut expected = Pause::FIRST;
        for _ in 0..10 {
            let is = pause.next();
            assert!(is >= expected / 2 && is <= expected * 3 / 2, "{is:?} of {expected:?}");
            expected = (expected * 2).min(Pause::LAST);
        }
        pause.reset();
        assert!(pause.next() <= Pause::FIRST * 3 / 2);
        let spread: Vec<Duration> = (0..100).map(|_| spread(Duration::from_secs(10))).collect();
        assert!(spread.iter().any(|it| *it < Duration::from_secs(9)));
        assert!(spread.iter().any(|it| *it > Duration::from_secs(11)));
    }
}
