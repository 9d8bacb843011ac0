//! The tables are those of vcc-view, with its units.

use std::collections::BTreeMap;

use serde_json::Value;
use vcc_engine::Limit;
use vcc_view::{Column, FLOW_COLUMNS, PORT_COLUMNS, Page, RULE_COLUMNS, TOTAL_COLUMNS};

use crate::visit::{DESK, visit};

/// Every column of the list is in the table, in the detail, or in neither, as the list says.
#[test]
fn the_list_of_columns_makes_the_table_and_the_detail() {
    let Some(mut visit) = visit("columns") else { return };
    visit.open(&DESK, "light");
    visit.browser.evaluate("document.querySelector('#flows tbody button').click()");
    visit.wait("document.querySelectorAll('#facts dd').length > 0");
    let shown = "[...document.querySelectorAll('#flows tbody tr:first-child td')].map(it => it.dataset.key).filter(key => key)";
    let in_table: Vec<Value> = visit.list(shown);
    let in_detail =
        visit.list("[...document.querySelectorAll('#facts > div')].map(it => it.dataset.fact)");
    assert_eq!(in_table, keys(FLOW_COLUMNS, [Page::Table, Page::TableAlone]));
    assert_eq!(in_detail, keys(FLOW_COLUMNS, [Page::Table, Page::Detail]));

    let limits = visit.column("limited_by");
    assert!(limits.iter().all(|limit| Limit::NAMES.contains(&limit.as_str())), "{limits:?}");
    assert!(limits.iter().any(|limit| limit == "underlay"), "{limits:?}");
    let words = visit.text("[data-fact=limited_by_text] dd");
    assert!(words.len() > "underlay".len(), "{words}");
    visit
        .browser
        .evaluate("document.querySelector('#flows [data-sort=limited-by] button').click()");
    visit.wait("document.querySelector('#flows [data-key=limited_by]').textContent === 'closed'");
    let mut sorted = visit.column("limited_by");
    sorted.sort();
    assert_eq!(visit.column("limited_by"), sorted);
    visit.assert_quiet();
}

fn keys<T>(columns: &[Column<T>], places: [Page; 2]) -> Vec<Value> {
    let columns = columns.iter().filter(|column| places.contains(&column.page));
    columns.map(|column| column.key.into()).collect()
}

#[test]
fn the_lists_of_columns_make_the_tables_of_ports_and_rules_and_the_tiles() {
    let Some(mut visit) = visit("summaries") else { return };
    visit.open(&DESK, "light");
    let in_table = [Page::Table, Page::TableAlone];
    for (table, expected) in
        [("ports", keys(PORT_COLUMNS, in_table)), ("rules", keys(RULE_COLUMNS, in_table))]
    {
        // The first cell is the row's heading. Ports that cannot be read come first.
        let cells = format!("document.querySelector('#{table} tbody tr:last-child').children");
        let shown = visit.list(&format!("[...{cells}].slice(1).map(it => it.dataset.key)"));
        assert_eq!(shown, expected[1..]);
        let unknown = format!("[...{cells}].filter(it => it.textContent.includes('–')).length");
        visit.wait(&format!("{unknown} === 0"));
    }
    let tiles =
        visit.list("[...document.querySelectorAll('#tiles > div')].map(it => it.dataset.key)");
    assert_eq!(tiles, keys(TOTAL_COLUMNS, in_table));
    visit.assert_quiet();
}

#[test]
fn the_page_writes_numbers_as_the_command_does() {
    let Some(mut visit) = visit("units") else { return };
    visit.open(&DESK, "light");
    let values =
        [0.0_f64, 0.4, 1.0, 999.0, 1000.0, 1023.6, 1024.0, 9.996, 99.96, 14_400.0, 608_000.0]
            .into_iter()
            .chain([999_600.0, 1_048_000.0, 9_412_000.0, 3.2e9, 4.7e12, 3e15]);
    let units = FLOW_COLUMNS.iter().map(|column| column.unit);
    let units: BTreeMap<_, _> =
        units.filter_map(|unit| Some((unit.name(), unit.short_notation()?))).collect();
    assert_eq!(units.len(), 8);
    for value in values {
        for (unit, notation) in &units {
            if notation.is_of_integers() && value.fract() != 0.0 {
                continue;
            }
            for (function, expected) in
                [("write", notation.write(value)), ("writeAlone", notation.write_alone(value))]
            {
                let asked = format!("{function}({unit:?}, {value})");
                let written = visit.browser.evaluate(&asked);
                let written = written.as_str().expect("text").replace('\u{a0}', " ");
                assert_eq!(written, expected, "{asked}");
            }
        }
    }
    visit.assert_quiet();
}
