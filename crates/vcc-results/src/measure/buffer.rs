//! What connections have of their port's buffer over time (vFlood, figure 4).

use super::{Measure, Needs, Takes, View};
use crate::result::Buffered;

/// The mean over the time in which a connection has something in the buffer.
pub(super) const MEAN_BYTES: Measure = Measure::plain(
    "buffer_mean_bytes",
    "in virtual time: what a connection to the flows' receivers has of its port's buffer, as a mean over the time in which it has anything",
    |view| over_held_time(view, &view.of, |seen| seen.byte_s),
)
.needing(Needs::Of)
.taking(Takes::Port);

/// Of two groups, as the figure has them side by side.
pub(super) const RATIO: Measure =
    Measure::plain("buffer_ratio", "`buffer_mean_bytes` of `of` over that of `over`", |view| {
        let mean = |flows| over_held_time(view, flows, |seen| seen.byte_s);
        Some(mean(&view.of)? / mean(&view.over)?)
    })
    .needing(Needs::Over)
    .taking(Takes::Port);

/// More than alpha times what is free (equation 1).
pub(super) const ABOVE_SHARE: Measure = Measure::plain(
    "buffer_above_share",
    "likewise, the part of that time in which it has more than its share of what is in the buffer (vFlood, equation 1)",
    |view| over_held_time(view, &view.of, |seen| seen.above_share_s),
)
.needing(Needs::Of)
.taking(Takes::Port);

fn over_held_time(view: &View, flows: &[usize], sum: fn(&Buffered) -> f64) -> Option<f64> {
    let receivers: Vec<usize> = flows.iter().map(|&flow| view.facts.flows[flow].data[1]).collect();
    let is_sender = |host: usize| flows.iter().any(|&flow| view.sender(flow) == host);
    let ports = view.data.translated.iter().filter(|port| is_sender(port.guest));
    let seen = ports.flat_map(|port| &port.buffered);
    let (sum, held_s) = seen
        .filter(|seen| receivers.contains(&seen.peer))
        .fold((0.0, 0.0), |(total, held_s), seen| (total + sum(seen), held_s + seen.held_s));
    (held_s > 0.0).then(|| sum / held_s)
}
