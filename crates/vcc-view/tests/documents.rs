//! The tables of columns in docs/seeing.md, which are generated from them.

use std::fmt::Debug;

use vcc_engine::Limit;
use vcc_testing::documents::Document;
use vcc_view::{
    Column, FLOW_COLUMNS, PORT_COLUMNS, Page, RULE_COLUMNS, Shown, TOTAL_COLUMNS, counters,
};

fn page() -> Document {
    Document::new("docs/seeing.md", "cargo test -p vcc-view --test documents")
}

fn cell(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" {text}") }
}

fn row_of_flows(column: &Column) -> String {
    let heading = column.heading();
    let heading = match column.shown {
        Shown::Always => heading,
        Shown::Where(_) => format!("{heading} *"),
        Shown::Wide => format!("({heading})"),
        Shown::Json => String::new(),
    };
    let sort = column.sort.map_or(String::new(), |sort| format!("`{sort}`"));
    let (heading, sort) = (cell(&heading), cell(&sort));
    format!("|{heading} | `{}` |{sort} | {} |\n", column.key, column.help)
}

/// Of ports or rules.
fn table<T>(columns: &[Column<T>]) -> String {
    let row = |column: &Column<T>| {
        let top = if column.top.is_some() { column.heading() } else { String::new() };
        let page = if column.page == Page::Nowhere { "" } else { column.name };
        let (top, page) = (cell(&top), cell(page));
        format!("|{top} |{page} | `{}` | {} |\n", column.key, column.help)
    };
    let rows: String = columns.iter().map(row).collect();
    format!("\n| `vcc top` | page | JSON | meaning |\n|---|---|---|---|\n{rows}\n")
}

#[test]
fn the_tables_of_columns_are_those_in_the_documentation() {
    let rows: String = FLOW_COLUMNS.iter().map(row_of_flows).collect();
    let flows = format!("\n| column | JSON | sort | meaning |\n|---|---|---|---|\n{rows}\n");
    page().assert_generated("columns", &flows);
    page().assert_generated("columns of ports", &table(PORT_COLUMNS));
    page().assert_generated("columns of rules", &table(RULE_COLUMNS));
}

#[test]
fn every_limit_and_counter_is_explained() {
    let text = page().text();
    let (_, limits) = text.split_once("\n## limited_by\n").expect("its section");
    let (limits, _) = limits.split_once("\n## ").expect("the next one");
    for limit in Limit::NAMES {
        assert!(limits.contains(&format!("\n| `{limit}` | ")), "no row of {limit}");
    }
    let with = text.lines().find(|line| line.starts_with("| `--with` | ")).expect("its row");
    let named: Vec<&str> = with.split('`').skip(1).step_by(2).skip(1).collect();
    let counters: Vec<&str> = counters().map(|(name, _)| name).collect();
    assert_eq!(named, counters, "{with}");
}

#[track_caller]
fn assert_unique<T: Ord + Debug>(values: impl Iterator<Item = T>) {
    let mut values: Vec<T> = values.collect();
    values.sort();
    let twice = values.windows(2).find(|pair| pair[0] == pair[1]);
    assert!(twice.is_none(), "{twice:?}");
}

#[test]
fn keys_and_headings_are_unique() {
    let in_tables = FLOW_COLUMNS.iter().filter(|it| !matches!(it.shown, Shown::Json));
    assert_unique(FLOW_COLUMNS.iter().map(|column| column.key));
    assert_unique(PORT_COLUMNS.iter().map(|column| column.key));
    assert_unique(RULE_COLUMNS.iter().map(|column| column.key));
    assert_unique(TOTAL_COLUMNS.iter().map(|column| column.key));
    assert_unique(in_tables.map(Column::heading));
    // `n` sorts by place.
    let top_keys = FLOW_COLUMNS.iter().filter_map(|column| column.top?.key);
    assert_unique(top_keys.chain("nhijkpq?/<> ".chars()));
}
