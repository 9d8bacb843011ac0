//! The columns of flows, ports, rules and totals with their units, from which the page makes its
//! tables.

use std::collections::BTreeMap;

use serde::Serialize;
use vcc_view::units::Notation;
use vcc_view::{Column, FLOW_COLUMNS, PORT_COLUMNS, Page, RULE_COLUMNS, TOTAL_COLUMNS, Unit};

#[derive(Serialize)]
pub struct ColumnsView {
    /// By name; text has none.
    units: BTreeMap<&'static str, &'static Notation>,
    totals: Vec<ColumnView>,
    ports: Vec<ColumnView>,
    rules: Vec<ColumnView>,
    flows: Vec<ColumnView>,
}

#[derive(Serialize)]
struct ColumnView {
    name: &'static str,
    /// In a flow of `/api/flows.json`, or in `/api/snapshot.json`.
    key: &'static str,
    unit: &'static str,
    help: String,
    /// For `sort` of `/api/flows.json`; None if it cannot be sorted by.
    sort: Option<&'static str>,
    in_table: bool,
    in_detail: bool,
}

pub fn columns() -> ColumnsView {
    let units = units_of(TOTAL_COLUMNS).chain(units_of(PORT_COLUMNS));
    let units = units.chain(units_of(RULE_COLUMNS)).chain(units_of(FLOW_COLUMNS));
    let notation = |unit: Unit| Some((unit.name(), unit.short_notation()?));
    ColumnsView {
        units: units.filter_map(notation).collect(),
        totals: views(TOTAL_COLUMNS),
        ports: views(PORT_COLUMNS),
        rules: views(RULE_COLUMNS),
        flows: views(FLOW_COLUMNS),
    }
}

fn units_of<T>(columns: &'static [Column<T>]) -> impl Iterator<Item = Unit> {
    columns.iter().map(|column| column.unit)
}

fn views<T>(columns: &[Column<T>]) -> Vec<ColumnView> {
    let view = |column: &Column<T>| ColumnView {
        name: column.name,
        key: column.key,
        unit: column.unit.name(),
        help: column.plain_help(),
        sort: column.sort,
        in_table: column.is_in_page_table(),
        in_detail: [Page::Table, Page::Detail].contains(&column.page),
    };
    columns.iter().map(view).collect()
}
