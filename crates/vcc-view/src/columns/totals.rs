//! Every column of what all connections have together, and each line of the page's charts.

use crate::column::{self, Page};
use crate::sums::Sums;
use crate::value::Unit::{BitsPerS, Bytes, Count, PerS};

type Column = column::Column<Sums>;

/// In the order of the page's tiles.
pub static TOTAL_COLUMNS: &[Column] = &[
    Column::new("Flows", "flows", Count, |sums| sums.flows.into(), "the connections")
        .page(Page::Table),
    Column::new(
        "Acknowledged",
        "goodput_bits_per_s",
        BitsPerS,
        |sums| sums.rates.map(|rates| rates.goodput_bits_per_s).into(),
        "acknowledged payload per second",
    )
    .page(Page::Table),
    Column::new(
        "Windows shown",
        "window_bytes",
        Bytes,
        |sums| sums.window_bytes.into(),
        "the windows shown to guests, summed over connections",
    )
    .page(Page::Table),
    Column::new(
        "Marks",
        "marks_per_s",
        PerS,
        |sums| sums.rates.map(|rates| rates.marks_per_s).into(),
        "ACKs and reports per second that carried congestion marks",
    )
    .page(Page::Table),
    Column::new(
        "Reductions",
        "reductions_per_s",
        PerS,
        |sums| sums.rates.map(|rates| rates.reductions_per_s).into(),
        "reductions of windows per second, for marks or losses",
    )
    .page(Page::Table),
    Column::new(
        "Retransmissions",
        "retransmissions_per_s",
        PerS,
        |sums| sums.rates.map(|rates| rates.retransmissions_per_s).into(),
        "segments per second that guests retransmitted",
    )
    .page(Page::Table),
    Column::new(
        "Dropped by vcc",
        "drops_per_s",
        PerS,
        |sums| sums.rates.map(|rates| rates.drops_per_s).into(),
        "segments per second that vcc dropped",
    )
    .page(Page::Table),
    Column::new(
        "Acked",
        "acked_bytes",
        Bytes,
        |sums| sums.growth.map(|growth| growth.acked_bytes).into(),
        "acknowledged payload since the daemon started",
    ),
    Column::new(
        "All marks",
        "marks",
        Count,
        |sums| sums.growth.map(|growth| growth.counts.marks).into(),
        "ACKs and reports that carried congestion marks since the daemon started",
    ),
    Column::new(
        "All reductions",
        "reductions",
        Count,
        |sums| sums.growth.map(|growth| growth.counts.reductions).into(),
        "reductions of windows since the daemon started",
    ),
    Column::new(
        "All retransmissions",
        "retransmissions",
        Count,
        |sums| sums.growth.map(|growth| growth.counts.retransmissions).into(),
        "segments that guests retransmitted since the daemon started",
    ),
    Column::new(
        "All drops",
        "drops",
        Count,
        |sums| sums.growth.map(|growth| growth.counts.drops).into(),
        "segments that vcc dropped since the daemon started",
    ),
];
