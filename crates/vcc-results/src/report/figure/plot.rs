//! The figure as an experiment file describes it.

use serde::Deserialize;
use vcc_fabric::HostId;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    pub kind: PlotKind,
    /// Of a curve: the metric on the vertical axis.
    #[serde(default)]
    pub metric: Option<String>,
    /// Of a curve: what the horizontal axis shows.
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
    /// By flow and time.
    GoodputOverTime,
    /// Send windows over time.
    Windows,
    /// A guest's own window over time, and that which is in force.
    BothWindows,
    /// A guest's own window over time, and that which vcc computes beside it.
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

/// Where a case stands in a figure of several.
#[derive(Debug, Clone)]
pub struct Placed {
    /// On a curve: its place, and the name of the line.
    pub x: f64,
    pub series: String,
    /// The hosts that send the flows of each group, in the order of the groups.
    pub senders: Vec<(String, Vec<HostId>)>,
}
