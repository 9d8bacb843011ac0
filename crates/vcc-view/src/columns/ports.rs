//! Every column of ports. A new one is one entry here.

use crate::column::{self, Page};
use crate::port::PortView;
use crate::value::Unit::{BitsPerS, Bytes, Count, Number, PerS, Text};

type Column = column::Column<PortView>;

/// In the order in which they are shown.
pub static PORT_COLUMNS: &[Column] = &[
    Column::new("Port", "port", Text, |port| (&*port.port).into(), "the device")
        .top_wide(0, 15)
        .page(Page::Table),
    Column::new(
        "Tenant",
        "tenant",
        Text,
        |port| port.tenant.as_deref().into(),
        "the tenant of the port; only the daemon knows it",
    ),
    Column::new(
        "Number",
        "index",
        Number,
        |port| port.index.into(),
        "its number among the policy's ports; none at a port that was attached by hand",
    ),
    Column::new(
        "Underlay",
        "underlay",
        Text,
        |port| port.underlay.as_deref().into(),
        "the congestion control that the fabric sees, or `by rule`",
    )
    .top_wide(3, 8),
    Column::new(
        "Mode",
        "mode",
        Text,
        |port| port.mode.as_deref().into(),
        "what vcc does with connections: `enforce`, `shadow`, `drain`, or `by rule`",
    )
    .top_wide(7, 7),
    Column::new(
        "Flows",
        "flows",
        Count,
        |port| port.sums().map(|sums| sums.flows).into(),
        "the connections in its table",
    )
    .top_wide(2, 5)
    .page(Page::Table),
    Column::new(
        "Max flows",
        "max_flows",
        Count,
        |port| port.max_flows.into(),
        "the size of its table",
    ),
    Column::new(
        "Rate",
        "goodput_bits_per_s",
        BitsPerS,
        |port| port.rates().map(|rates| rates.goodput_bits_per_s).into(),
        "acknowledged payload per second",
    )
    .top(1, None)
    .page(Page::Table),
    Column::new(
        "Window",
        "window_bytes",
        Bytes,
        |port| port.sums().map(|sums| sums.window_bytes).into(),
        "the windows shown to the guest, summed over its connections",
    )
    .page(Page::Table),
    Column::new(
        "Marks/s",
        "marks_per_s",
        PerS,
        |port| port.rates().map(|rates| rates.marks_per_s).into(),
        "ACKs and reports per second that carried congestion marks",
    )
    .top(4, None)
    .page(Page::Table),
    Column::new(
        "Reduc/s",
        "reductions_per_s",
        PerS,
        |port| port.rates().map(|rates| rates.reductions_per_s).into(),
        "reductions of windows per second, for marks or losses",
    )
    .top(6, None),
    Column::new(
        "Retr/s",
        "retransmissions_per_s",
        PerS,
        |port| port.rates().map(|rates| rates.retransmissions_per_s).into(),
        "segments per second that the guest retransmitted",
    )
    .top(5, None),
    Column::new(
        "Drops/s",
        "drops_per_s",
        PerS,
        |port| port.rates().map(|rates| rates.drops_per_s).into(),
        "segments per second that vcc dropped",
    ),
    Column::new(
        "Acknowledged",
        "acked_bytes",
        Bytes,
        |port| port.growth().map(|growth| growth.acked_bytes).into(),
        "acknowledged payload since the daemon started",
    ),
    Column::new(
        "Marks",
        "marks",
        Count,
        |port| port.growth().map(|growth| growth.counts.marks).into(),
        "ACKs and reports that carried congestion marks since the daemon started",
    ),
    Column::new(
        "Reductions",
        "reductions",
        Count,
        |port| port.growth().map(|growth| growth.counts.reductions).into(),
        "reductions of windows since the daemon started",
    ),
    Column::new(
        "Retrans",
        "retransmissions",
        Count,
        |port| port.growth().map(|growth| growth.counts.retransmissions).into(),
        "segments that the guest retransmitted since the daemon started",
    ),
    Column::new(
        "Drops",
        "drops",
        Count,
        |port| port.growth().map(|growth| growth.counts.drops).into(),
        "segments that vcc dropped since the daemon started",
    ),
    Column::new(
        "Untranslated",
        "untranslated_segments",
        Count,
        |port| port.untranslated_segments().into(),
        "segments passed untouched, dropped or not sent since the port was attached; `counters` has the reasons",
    )
    .page(Page::Table),
    Column::new(
        "Failure",
        "failure",
        Text,
        |port| port.failure.as_deref().into(),
        "why the port cannot be read; all that is not known of it is then `null`",
    ),
];
