//! Counters of the TCP of the hosts that data leaves and reaches, by the kernel's names.

use super::{Measure, Needs, View};
use std::collections::BTreeSet;
use vcc_fabric::HostId;

const fn counter(
    name: &'static str,
    text: &'static str,
    compute: fn(&View) -> Option<f64>,
) -> Measure {
    Measure::plain(name, text, compute).needing(Needs::Of)
}

/// RFC 6298, 5.
pub(super) const TIMEOUTS: Measure =
    counter("tcp_timeouts", "retransmission timeouts of the hosts that send the data", |view| {
        of_senders(view, &["TCPTimeouts"])
    });

/// Those that the sender itself found out, and undid.
pub(super) const SPURIOUS_TIMEOUTS: Measure = counter(
    "tcp_spurious_timeouts",
    "timeouts that the sender found needless, by F-RTO, timestamps or DSACKs",
    |view| of_senders(view, &["TCPLossUndo", "TCPDSACKUndo"]),
);

pub(super) const LOSS_PROBES: Measure =
    counter("tcp_loss_probes", "tail loss probes that they sent", |view| {
        of_senders(view, &["TCPLossProbes"])
    });

pub(super) const RETRANSMITTED_SEGS: Measure =
    counter("tcp_retransmitted_segs", "segments that they retransmitted", |view| {
        of_senders(view, &["RetransSegs"])
    });

/// For a segment that had been received, and for one out of order (RFC 5681).
pub(super) const DUPLICATE_ACKS: Measure = counter(
    "tcp_duplicate_acks",
    "data segments at their receivers that were there already or came out of order",
    |view| of_receivers(view, &["DelayedACKLost", "TCPOFOQueue"]),
);

pub(super) const STALLS: Measure =
    counter("tcp_stalls", "PVTCP: stalls that the senders' connections met", |view| {
        of_senders(view, &["TCPPVStalls"])
    });

pub(super) const POSTPONED_TIMERS: Measure =
    counter("tcp_postponed_timers", "PVTCP: timers that a stall postponed", |view| {
        of_senders(view, &["TCPPVTimers"])
    });

pub(super) const REPLACED_SAMPLES: Measure = counter(
    "tcp_replaced_samples",
    "PVTCP: RTT samples that a stall made, and that were replaced",
    |view| of_senders(view, &["TCPPVSamples"]),
);

fn of_senders(view: &View, names: &[&str]) -> Option<f64> {
    of_hosts(view, 0, names)
}

fn of_receivers(view: &View, names: &[&str]) -> Option<f64> {
    of_hosts(view, 1, names)
}

/// None where a host's counters were not read.
fn of_hosts(view: &View, end: usize, names: &[&str]) -> Option<f64> {
    let hosts = view.of.iter().map(|&flow| view.facts.flows[flow].data[end]);
    let hosts: BTreeSet<HostId> = hosts.collect();
    let counts = hosts.iter().map(|host| {
        let counters = view.data.tcp.get(host)?;
        Some(names.iter().map(|name| counters.get(name)).sum::<u64>())
    });
    counts.sum::<Option<u64>>().map(|count| count as f64)
}
