//! Shadow mode: vcc's computation next to a native sender of the same algorithm.

use super::{Measure, Takes, View};
use crate::result::averaged;
use crate::result::statistics::{mean, median};

/// Window reductions that vcc counted over the CWRs that the guest itself sent; 1 is exact.
pub(super) const REDUCTIONS_OVER_CWRS: Measure = Measure::plain(
    "reductions_over_cwrs",
    "shadow mode: vcc's window reductions over the guest's own CWRs",
    reductions_over_cwrs,
)
.taking(Takes::Shadow);

/// Median of |cwnd - flight| / flight: the guest's flight is its window while it has data.
pub(super) const CWND_ERROR: Measure =
    Measure::plain("cwnd_error", "shadow mode: median of abs(cwnd - flight) / flight", cwnd_error)
        .taking(Takes::Shadow);

/// Median of |cwnd - cwnd'| / cwnd' after the same acknowledgement, with cwnd' the guest's own as
/// its kernel reports it.
pub(super) const TRACKING_ERROR: Measure = Measure::plain(
    "tracking_error",
    "shadow mode: median of abs(cwnd - cwnd') / cwnd' after the same acknowledgement, with cwnd' the guest's own",
    tracking_error,
)
.taking(Takes::Shadow);

/// The tracking error of averages over 100 ms (AC/DC, figure 9b).
pub(super) const TRACKING_ERROR_100_MS: Measure = Measure::plain(
    "tracking_error_100ms",
    "shadow mode: the tracking error of averages over 100 ms",
    tracking_error_100_ms,
)
.taking(Takes::Shadow);

fn reductions_over_cwrs(view: &View) -> Option<f64> {
    let with_cwrs = view.translated().filter(|seen| seen.guest_cwrs > 0);
    mean(with_cwrs.map(|seen| f64::from(seen.reductions) / f64::from(seen.guest_cwrs)))
}

fn cwnd_error(view: &View) -> Option<f64> {
    let errors: Vec<f64> = view.translated().flat_map(|seen| seen.cwnd_errors.clone()).collect();
    median(&errors)
}

fn tracking_error(view: &View) -> Option<f64> {
    let pairs = view.translated().flat_map(|seen| seen.tracking.pairs());
    median(&pairs.map(|pair| pair.error()).collect::<Vec<_>>())
}

fn tracking_error_100_ms(view: &View) -> Option<f64> {
    let averages = view.translated().flat_map(|seen| averaged(&seen.tracking.pairs(), 100_000));
    median(&averages.map(|pair| pair.error()).collect::<Vec<_>>())
}
