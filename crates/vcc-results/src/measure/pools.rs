//! Use of the pools' windows.

use super::{Measure, Takes, View};

/// The most that a pool's flows ever held together, over its window.
pub(super) const MOST_HELD_SHARE: Measure = Measure::plain(
    "pool_most_held_share",
    "the most that the flows of a pool ever held, over its window",
    most_held,
)
.taking(Takes::Pools);

/// The number of times that the minimum window of a flow exceeded the rest of its pool.
pub(super) const OVERDRAWN: Measure = Measure::plain(
    "pool_overdrawn",
    "how often the flows of a pool held more than its window",
    overdrawn,
)
.taking(Takes::Pools);

fn most_held(view: &View) -> Option<f64> {
    let shares = view
        .data
        .pools
        .iter()
        .map(|pool| f64::from(pool.most_held_bytes) / f64::from(pool.window_bytes));
    shares.reduce(f64::max)
}

fn overdrawn(view: &View) -> Option<f64> {
    let times = view.data.pools.iter().map(|pool| f64::from(pool.overdrawn));
    times.reduce(|a, b| a + b)
}
