//! What connections wait for, as their port reports it.

use super::{Measure, Takes, View, share};
use crate::result::Delayed;
use crate::result::statistics::median;

const fn delay(
    name: &'static str,
    text: &'static str,
    compute: fn(&View) -> Option<f64>,
) -> Measure {
    Measure::plain(name, text, compute).taking(Takes::Port)
}

/// Connections that wait for the guest alone, as a share of those with an answer.
pub(super) const BY_GUEST: Measure = delay(
    "delayed_by_guest",
    "in virtual time: connections that their port says to be delayed by the guest, as a share of those of which it has measured more than 20 waits",
    |view| share_of(view, "guest"),
);

/// Those that wait for the fabric alone.
pub(super) const BY_FABRIC: Measure =
    delay("delayed_by_fabric", "likewise, by the fabric or the peer", |view| {
        share_of(view, "fabric")
    });

/// Those that wait for either.
pub(super) const BY_BOTH: Measure =
    delay("delayed_by_both", "likewise, by both", |view| share_of(view, "both"));

/// Those that wait for none.
pub(super) const BY_NEITHER: Measure =
    delay("delayed_by_neither", "likewise, by neither", |view| share_of(view, "neither"));

pub(super) const GUEST_US: Measure = delay(
    "guest_delay_us",
    "in virtual time: median of the connections' guest delays in us, as their port says",
    |view| median(&delays(view).filter_map(|seen| Some(seen.guest_us?.into())).collect::<Vec<_>>()),
);

pub(super) const FABRIC_US: Measure =
    delay("fabric_delay_us", "likewise, of their fabric delays in us", |view| {
        median(&delays(view).filter_map(|seen| Some(seen.fabric_us?.into())).collect::<Vec<_>>())
    });

fn delays<'a>(view: &'a View) -> impl Iterator<Item = &'a Delayed> {
    view.translated_at_ends().flat_map(|seen| &seen.delays)
}

fn share_of(view: &View, by: &str) -> Option<f64> {
    share(delays(view), |seen| seen.by == by)
}
