//! Every column of the sums over all connections: the tiles of the page, and its charts.

use super::sums::{self, Summed};
use crate::column::{self, Page};
use crate::sums::Sums;

type Column = column::Column<Sums>;

impl Summed for Sums {
    fn sums(&self) -> Option<&Sums> {
        Some(self)
    }
}

/// In the order of the page's tiles.
pub static TOTAL_COLUMNS: &[Column] = &[
    sums::flows().page(Page::Table),
    sums::rate().named("Acknowledged").page(Page::Table),
    sums::window().named("Windows shown").page(Page::Table),
    sums::marks_per_s().named("Marks").page(Page::Table),
    sums::reductions_per_s().named("Reductions").page(Page::Table),
    sums::retransmissions_per_s().named("Retransmissions").page(Page::Table),
    sums::drops_per_s().named("Dropped by vcc").page(Page::Table),
    sums::acked(),
    sums::marks(),
    sums::reductions(),
    sums::retransmissions(),
    sums::drops(),
];
