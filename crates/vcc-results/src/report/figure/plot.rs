//! The figure as an experiment file describes it.

use serde::Deserialize;
use vcc_fabric::HostId;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    pub kind: PlotKind,
    /// The metric on the vertical axis of a curve.
    #[serde(default)]
    pub metric: Option<String>,
    /// The quantity on the horizontal axis of a curve.
    #[serde(default)]
    pub x: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    /// One bar per flow.
    Goodput,
    /// One bar per case.
    Metric,
    /// A metric over `x`, one line per series.
    Curve,
    /// Goodput over time, one line per flow.
    GoodputOverTime,
    /// Send windows over time.
    Windows,
    /// A guest's cwnd and the send window in force, over time.
    BothWindows,
    /// A guest's smoothed RTT and its RTO, over time.
    Rto,
    /// A guest's cwnd and the one that vcc computes next to it, over time.
    Tracking,
    /// Round-trip times of probes, one line per case.
    Rtt,
    /// Throughputs of single transfers, one line per case.
    Transfers,
    /// The bottleneck's queue over time.
    Queue,
    /// Histogram of the times between two acknowledgements.
    AckGaps,
}

/// The place of a case in a figure of several cases.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The horizontal position of the case on a curve.
    pub x: f64,
    pub series: String,
    /// The title of the panel that the curve is in.
    pub panel: String,
    /// The hosts that send the flows of each group, in the order of the groups.
    pub senders: Vec<(String, Vec<HostId>)>,
}
