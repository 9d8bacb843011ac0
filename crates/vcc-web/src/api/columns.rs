//! The columns of a flow, from which the page makes its table and its detail.

use serde::Serialize;
use vcc_view::{COLUMNS, Page};

#[derive(Serialize)]
pub struct ColumnView {
    name: &'static str,
    /// In a flow of `/api/flows.json`.
    key: &'static str,
    unit: &'static str,
    help: String,
    /// For `sort` of `/api/flows.json`; None if it cannot be sorted by.
    sort: Option<&'static str>,
    in_table: bool,
    in_detail: bool,
}

pub fn columns() -> Vec<ColumnView> {
    let view = |column: &vcc_view::Column| ColumnView {
        name: column.name,
        key: column.key,
        unit: column.unit.name(),
        help: column.plain_help(),
        sort: column.sort,
        in_table: [Page::Table, Page::TableAlone].contains(&column.page),
        in_detail: [Page::Table, Page::Detail].contains(&column.page),
    };
    COLUMNS.iter().map(view).collect()
}
