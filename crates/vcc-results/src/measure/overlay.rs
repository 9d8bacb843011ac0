//! Accuracy of the inferred classes of guests' congestion control.

use super::{Measure, Takes, View, share};
use crate::result::Guessed;

const fn guess(
    name: &'static str,
    text: &'static str,
    compute: fn(&View) -> Option<f64>,
) -> Measure {
    Measure::plain(name, text, compute).taking(Takes::Shadow)
}

/// Right inferences as a share of those made.
pub(super) const RIGHT: Measure = guess(
    "overlay_right",
    "shadow mode in virtual time: right inferences of the senders' congestion control, as a share of those made",
    |view| {
        let dared = guesses(view).filter(|seen| is_dared(seen));
        share(dared, |seen| seen.truth.as_deref() == Some(&seen.class))
    },
);

/// Wrong inferences as a share of all flows.
pub(super) const WRONG: Measure = guess(
    "overlay_wrong",
    "shadow mode in virtual time: wrong inferences, as a share of all flows",
    |view| {
        share(guesses(view), |seen| is_dared(seen) && seen.truth.as_deref() != Some(&seen.class))
    },
);

/// Flows without an inference.
pub(super) const UNKNOWN: Measure = guess(
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
