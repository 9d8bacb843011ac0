//! Shadow mode: what vcc would have done beside a sender that does it itself.

use super::{Measure, Needs, View, mean, median};
use crate::translate::Observation;

/// Window reductions that vcc counted over the CWRs that the guest itself sent; 1 is exact.
pub(super) const REDUCTIONS_OVER_CWRS: Measure =
    Measure { name: "reductions_over_cwrs", needs: Needs::Nothing, compute: reductions_over_cwrs };

/// Median of |cwnd - flight| / flight: the guest's flight is its window while it has data.
pub(super) const CWND_ERROR: Measure =
    Measure { name: "cwnd_error", needs: Needs::Nothing, compute: cwnd_error };

fn observations<'a>(view: &'a View) -> impl Iterator<Item = &'a Observation> {
    view.data.translated.iter().filter(|seen| view.of.contains(&seen.guest))
}

fn reductions_over_cwrs(view: &View) -> Option<f64> {
    let with_cwrs = observations(view).filter(|seen| seen.guest_cwrs > 0);
    mean(with_cwrs.map(|seen| f64::from(seen.reductions) / f64::from(seen.guest_cwrs)))
}

fn cwnd_error(view: &View) -> Option<f64> {
    let errors: Vec<f64> = observations(view).flat_map(|seen| seen.cwnd_errors.clone()).collect();
    median(&errors)
}
