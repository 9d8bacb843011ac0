//! The table of columns in docs/seeing.md, which is generated from them.

use std::fmt::Debug;
use std::{env, fs};

use vcc_engine::Limit;
use vcc_view::{COLUMNS, Column, Shown, counters};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/seeing.md");
const BEGIN: &str = "<!-- columns: generated -->\n";
const END: &str = "<!-- end of columns -->\n";
/// Set, it has the table written anew.
const WRITE: &str = "VCC_WRITE_DOCS";

fn table() -> String {
    let rows: String = COLUMNS.iter().map(row).collect();
    format!("\n| column | JSON | sort | meaning |\n|---|---|---|---|\n{rows}\n")
}

fn row(column: &Column) -> String {
    let heading = column.heading();
    let heading = match column.shown {
        Shown::Always => heading,
        Shown::Where(_) => format!("{heading} *"),
        Shown::Wide => format!("({heading})"),
        Shown::Json => String::new(),
    };
    let sort = column.sort.map_or(String::new(), |sort| format!(" `{sort}`"));
    let heading = if heading.is_empty() { heading } else { format!(" {heading}") };
    format!("|{heading} | `{}` |{sort} | {} |\n", column.key, column.help)
}

#[test]
fn the_table_of_columns_is_the_one_in_the_documentation() {
    let text = fs::read_to_string(PAGE).expect("the page");
    let (before, rest) = text.split_once(BEGIN).expect("the begin of the table");
    let (written, after) = rest.split_once(END).expect("the end of the table");
    if written == table() {
        return;
    }
    if env::var_os(WRITE).is_some() {
        let text = format!("{before}{BEGIN}{}{END}{after}", table());
        return fs::write(PAGE, text).expect("written");
    }
    panic!(
        "docs/seeing.md is stale: `{WRITE}=1 cargo test -p vcc-view --test documents` writes it"
    );
}

#[test]
fn every_limit_and_counter_is_explained() {
    let text = fs::read_to_string(PAGE).expect("the page");
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
    let in_tables = COLUMNS.iter().filter(|it| !matches!(it.shown, Shown::Json));
    assert_unique(COLUMNS.iter().map(|column| column.key));
    assert_unique(in_tables.map(Column::heading));
    // `n` sorts by place.
    let top_keys = COLUMNS.iter().filter_map(|column| column.top?.key);
    assert_unique(top_keys.chain("nhijkpq?/<> ".chars()));
}
