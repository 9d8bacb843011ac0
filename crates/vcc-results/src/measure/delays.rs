//! What connections wait for, as their port says.

use super::{Measure, View};
use crate::result::Delayed;
use crate::result::statistics::median;

/// Connections that wait for the guest alone, as a share of those with an answer.
pub(super) const BY_GUEST: Measure = Measure::plain(
    "delayed_by_guest",
    "in virtual time: connections that their port says to be delayed by the guest, as a share of all of more than 20 round trips",
    |view| share(view, "guest"),
);

/// Those that wait for the fabric alone.
pub(super) const BY_FABRIC: Measure =
    Measure::plain("delayed_by_fabric", "likewise, by the fabric or the peer", |view| {
        share(view, "fabric")
    });

/// Those that wait for either.
pub(super) const BY_BOTH: Measure =
    Measure::plain("delayed_by_both", "likewise, by both", |view| share(view, "both"));

/// Those that wait for none.
pub(super) const BY_NEITHER: Measure =
    Measure::plain("delayed_by_neither", "likewise, by neither", |view| share(view, "neither"));

pub(super) const GUEST_US: Measure = Measure::plain(
    "guest_delay_us",
    "in virtual time: median of the connections' guest delays in us, as their port says",
    |view| median(&of(view).filter_map(|seen| Some(seen.guest_us?.into())).collect::<Vec<_>>()),
);

pub(super) const FABRIC_US: Measure =
    Measure::plain("fabric_delay_us", "likewise, of their fabric delays in us", |view| {
        median(&of(view).filter_map(|seen| Some(seen.fabric_us?.into())).collect::<Vec<_>>())
    });

fn of<'a>(view: &'a View) -> impl Iterator<Item = &'a Delayed> {
    let own = view.data.translated.iter().filter(|seen| view.is_of(seen.guest));
    own.flat_map(|seen| &seen.delays)
}

fn share(view: &View, by: &str) -> Option<f64> {
    let (held, all) =
        of(view).fold((0, 0), |(held, all), seen| (held + i32::from(seen.by == by), all + 1));
    (all > 0).then(|| f64::from(held) / f64::from(all))
}
