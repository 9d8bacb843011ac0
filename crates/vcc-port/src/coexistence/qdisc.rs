//! The root qdisc, through which segments to the guest go after vcc.

use super::Found;
use super::neighbours::{Neighbours, TC_H_ROOT};
use crate::Result;

/// Those that keep no packets.
const NO_QUEUES: &[&str] = &["noqueue", "noop"];
/// The one that heeds earliest departure times (datapath/departure.h), by itself or in each queue.
const PACER: &str = "fq";
/// Those that hold packets back though the device would take them.
const SHAPERS: &[&str] =
    &["tbf", "htb", "hfsc", "cbq", "cake", "netem", "etf", "taprio", "cbs", "plug"];

const QUEUE: &str = "\
    Segments to the guest wait here after vcc. vcc counts a segment that is dropped here as delivered.";
const PACES: &str = "\
    It paces the ACKs of windows below one segment (`window_floor_segments = 0`). vcc counts a \
    segment that is dropped here as delivered.";
const SHAPER: &str = "\
    It delays or drops segments to the guest after vcc, so vcc does not see it as a part of the \
    fabric: the delay counts as the guest's, and a dropped segment as delivered.";

pub(super) fn check(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    let mut found = root(at);
    if !paces(at) && at.may_pace_acks()? {
        let meaning = format!(
            "Windows below one segment (`window_floor_segments = 0`) end at one, because nothing delays \
             their ACKs: `tc qdisc replace dev {} root fq`.",
            at.device.name
        );
        found.push(Found::warning("no queueing discipline `fq`".to_owned(), meaning));
    }
    Ok(found)
}

fn root(at: &Neighbours<'_>) -> Vec<Found> {
    let Some(root) = at.qdiscs().find(|qdisc| qdisc.parent == TC_H_ROOT) else {
        return Vec::new();
    };
    if NO_QUEUES.contains(&root.kind.as_str()) {
        return Vec::new();
    }
    // The kernel gives its default qdiscs no handle.
    let whose = if root.handle == 0 { "the kernel's default" } else { "set" };
    let inner: Vec<&str> = at
        .qdiscs()
        .filter(|qdisc| qdisc.parent >> 16 == root.handle >> 16 && root.handle != 0)
        .map(|qdisc| qdisc.kind.as_str())
        .collect();
    let inner =
        if inner.is_empty() { String::new() } else { format!(", with {}", inner.join(", ")) };
    let found = format!("root qdisc {} ({whose}{inner})", root.kind);
    let shapes = |kind: &str| SHAPERS.contains(&kind);
    if !at.qdiscs().any(|qdisc| shapes(&qdisc.kind)) {
        let meaning = if paces(at) { PACES } else { QUEUE };
        return vec![Found::note(found, meaning)];
    }
    vec![Found::warning(found, SHAPER).remedy(
        "limit what comes to the guest at its senders, by `rate_cap` in the rules of their \
         ports, or in the fabric",
    )]
}

/// Does the device delay segments to the guest until their departure times?
fn paces(at: &Neighbours<'_>) -> bool {
    at.qdiscs().any(|qdisc| qdisc.kind == PACER)
}
