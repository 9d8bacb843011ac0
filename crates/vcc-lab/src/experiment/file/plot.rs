//! How a figure is drawn.

use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotSpec {
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
    /// Bars, one a flow.
    Goodput,
    /// Bars, one a case.
    Metric,
    /// A metric over `x`, one line a series.
    Curve,
    /// By flow and time.
    GoodputOverTime,
    /// Send windows over time.
    Windows,
    /// A guest's own window over time, and that which is in force.
    BothWindows,
    /// A guest's own window over time, and that which vcc computes beside it.
    Tracking,
    /// Round-trip times of probes, one line a case.
    Rtt,
    /// Throughputs of single transfers, one line a case.
    Transfers,
    /// The bottleneck's queue over time.
    Queue,
    /// How often which time lay between two acknowledgements.
    AckGaps,
}
