//! Accuracy of the inferred classes of guests' congestion control.

use super::{Measure, View, share};
use crate::result::Guessed;

/// Right inferences as a share of those made.
pub(super) const RIGHT: Measure = Measure::plain(
    "overlay_right",
    "shadow mode in virtual time: right inferences of the senders' congestion control, as a share of those made",
    |view| {
        let dared = guesses(view).filter(|seen| is_dared(seen));
        share(dared, |seen| seen.truth.as_deref() == Some(&seen.class))
    },
);

/// Wrong inferences as a share of all flows.
pub(super) const WRONG: Measure = Measure::plain(
    "overlay_wrong",
    "shadow mode in virtual time: wrong inferences, as a share of all flows",
    |view| {
        share(guesses(view), |seen| is_dared(seen) && seen.truth.as_deref() != Some(&seen.class))
    },
);

/// Flows without an inference.
pub(super) const UNKNOWN: Measure = Measure::plain(
    "overlay_unknown",
    "shadow mode in virtual time: flows without an inference, as a share of all",
    |view| share(guesses(view), |seen| !is_dared(seen)),
);

fn guesses<'a>(view: &'a View) -> impl Iterator<Item = &'a Guessed> {
    view.translated().filter_map(|seen| seen.overlay.as_ref())
}

fn is_dared(seen: &Guessed) -> bool {
    seen.class != Guessed::UNKNOWN
}
