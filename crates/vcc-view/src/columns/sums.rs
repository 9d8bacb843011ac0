//! The columns of sums over connections, which ports, rules and totals share.

use crate::column::Column;
use crate::rates::{Growth, Rates};
use crate::sums::Sums;
use crate::value::Unit::{BitsPerS, Bytes, Count, PerS};

/// A row that has sums over connections.
pub(super) trait Summed: 'static {
    /// None where they are not known.
    fn sums(&self) -> Option<&Sums>;

    fn rates(&self) -> Option<Rates> {
        self.sums()?.rates
    }

    fn growth(&self) -> Option<Growth> {
        self.sums()?.growth
    }
}

macro_rules! columns {
    ($($column:ident: $name:literal, $key:literal, $unit:ident, $value:expr, $help:literal;)*) => {$(
        pub(super) const fn $column<T: Summed>() -> Column<T> {
            Column::new($name, $key, $unit, $value, $help)
        }
    )*};
}

columns! {
    flows: "Flows", "flows", Count,
        |row| row.sums().map(|sums| sums.flows).into(),
        "the live connections";
    window: "Window", "window_bytes", Bytes,
        |row| row.sums().map(|sums| sums.window_bytes).into(),
        "the windows shown to guests, summed over connections";
    rate: "Rate", "goodput_bits_per_s", BitsPerS,
        |row| row.rates().map(|rates| rates.goodput_bits_per_s).into(),
        "acknowledged payload per second";
    marks_per_s: "Marks/s", "marks_per_s", PerS,
        |row| row.rates().map(|rates| rates.marks_per_s).into(),
        "ACKs and reports per second that carried congestion marks";
    reductions_per_s: "Reduc/s", "reductions_per_s", PerS,
        |row| row.rates().map(|rates| rates.reductions_per_s).into(),
        "reductions of windows per second, for marks or losses";
    retransmissions_per_s: "Retr/s", "retransmissions_per_s", PerS,
        |row| row.rates().map(|rates| rates.retransmissions_per_s).into(),
        "segments per second that guests retransmitted";
    drops_per_s: "Drops/s", "drops_per_s", PerS,
        |row| row.rates().map(|rates| rates.drops_per_s).into(),
        "segments per second that vcc dropped";
    acked: "Acknowledged", "acked_bytes", Bytes,
        |row| row.growth().map(|growth| growth.acked_bytes).into(),
        "acknowledged payload since the daemon started";
    marks: "Marks", "marks", Count,
        |row| row.growth().map(|growth| growth.counts.marks).into(),
        "ACKs and reports that carried congestion marks since the daemon started";
    reductions: "Reductions", "reductions", Count,
        |row| row.growth().map(|growth| growth.counts.reductions).into(),
        "reductions of windows since the daemon started";
    retransmissions: "Retrans", "retransmissions", Count,
        |row| row.growth().map(|growth| growth.counts.retransmissions).into(),
        "segments that guests retransmitted since the daemon started";
    drops: "Drops", "drops", Count,
        |row| row.growth().map(|growth| growth.counts.drops).into(),
        "segments that vcc dropped since the daemon started";
}
