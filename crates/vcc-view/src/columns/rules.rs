//! Every column of rules. A new one is one entry here.

use crate::column::{self, Page};
use crate::rule::RuleView;
use crate::value::Unit::{BitsPerS, Bytes, Count, PerS, Text};

type Column = column::Column<RuleView>;

/// In the order in which they are shown.
pub static RULE_COLUMNS: &[Column] = &[
    Column::new("Rule", "name", Text, |rule| (&*rule.name).into(), "the name in the policy")
        .top_wide(0, 15)
        .page(Page::Table),
    Column::new(
        "Underlay",
        "underlay",
        Text,
        |rule| (&*rule.underlay).into(),
        "the congestion control that the fabric sees",
    )
    .top_wide(3, 8),
    Column::new(
        "Mode",
        "mode",
        Text,
        |rule| (&*rule.mode).into(),
        "what vcc does with connections: `enforce`, `shadow`, `ignore`",
    )
    .top_wide(4, 7)
    .page(Page::Table),
    Column::new("Flows", "flows", Count, |rule| rule.sums.flows.into(), "the live connections")
        .top_wide(2, 5)
        .page(Page::Table),
    Column::new(
        "Rate",
        "goodput_bits_per_s",
        BitsPerS,
        |rule| rule.rates().map(|rates| rates.goodput_bits_per_s).into(),
        "acknowledged payload per second",
    )
    .top(1, None),
    Column::new(
        "Connections",
        "connections",
        Count,
        |rule| rule.connections.into(),
        "the connections that came under the rule, by a SYN or a reload: on the page since the daemon \
         started, in `vcc top` since the policy's edition came into force",
    )
    .top_wide(5, 8)
    .page(Page::Table),
    Column::new(
        "Window",
        "window_bytes",
        Bytes,
        |rule| rule.sums.window_bytes.into(),
        "the windows shown to guests, summed over connections",
    ),
    Column::new(
        "Marks/s",
        "marks_per_s",
        PerS,
        |rule| rule.rates().map(|rates| rates.marks_per_s).into(),
        "ACKs and reports per second that carried congestion marks",
    )
    .top(6, None)
    .page(Page::Table),
    Column::new(
        "Reduc/s",
        "reductions_per_s",
        PerS,
        |rule| rule.rates().map(|rates| rates.reductions_per_s).into(),
        "reductions of windows per second, for marks or losses",
    ),
    Column::new(
        "Retr/s",
        "retransmissions_per_s",
        PerS,
        |rule| rule.rates().map(|rates| rates.retransmissions_per_s).into(),
        "segments per second that guests retransmitted",
    )
    .top(7, None),
    Column::new(
        "Drops/s",
        "drops_per_s",
        PerS,
        |rule| rule.rates().map(|rates| rates.drops_per_s).into(),
        "segments per second that vcc dropped",
    ),
    Column::new(
        "Acknowledged",
        "acked_bytes",
        Bytes,
        |rule| rule.growth().map(|growth| growth.acked_bytes).into(),
        "acknowledged payload since the daemon started",
    ),
    Column::new(
        "Marks",
        "marks",
        Count,
        |rule| rule.growth().map(|growth| growth.counts.marks).into(),
        "ACKs and reports that carried congestion marks since the daemon started",
    )
    .page(Page::Table),
    Column::new(
        "Reductions",
        "reductions",
        Count,
        |rule| rule.growth().map(|growth| growth.counts.reductions).into(),
        "reductions of windows since the daemon started",
    )
    .page(Page::Table),
    Column::new(
        "Retrans",
        "retransmissions",
        Count,
        |rule| rule.growth().map(|growth| growth.counts.retransmissions).into(),
        "segments that guests retransmitted since the daemon started",
    )
    .page(Page::Table),
    Column::new(
        "Drops",
        "drops",
        Count,
        |rule| rule.growth().map(|growth| growth.counts.drops).into(),
        "segments that vcc dropped since the daemon started",
    )
    .page(Page::Table),
];
