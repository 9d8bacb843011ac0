//! The lists of columns, a file for each table.

mod flows;
mod ports;
mod rules;
mod sums;
mod totals;

use crate::column::Column;

pub use flows::{FLOW_COLUMNS, counters, key_of, rows, sortable};
pub use ports::PORT_COLUMNS;
pub use rules::RULE_COLUMNS;
pub use totals::TOTAL_COLUMNS;

/// The cell of one column, by its key.
pub fn cell<T>(columns: &[Column<T>], row: &T, key: &str) -> String {
    let column = columns.iter().find(|column| column.key == key);
    column.map_or("-".into(), |column| column.cell(row))
}
