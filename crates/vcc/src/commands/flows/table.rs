//! The flows as a table.

use vcc_command::table::{self, Align, Table};
use vcc_view::{Column, FLOW_COLUMNS, FlowView, Shown, Unit};

pub fn table(flows: &[FlowView], is_wide: bool) -> String {
    table_with(flows, |flow| flow, &[], is_wide)
}

/// The columns of flows, and `more` behind them.
pub fn table_with<T>(
    rows: &[T],
    flow: impl Fn(&T) -> &FlowView,
    more: &[Column<T>],
    is_wide: bool,
) -> String {
    let of_flows = FLOW_COLUMNS.iter();
    let columns: Vec<&Column> =
        of_flows.filter(|column| is_shown(column, rows.iter().map(&flow), is_wide)).collect();
    let more: Vec<&Column<T>> =
        more.iter().filter(|column| is_shown(column, rows.iter(), is_wide)).collect();
    let of_flows = columns.iter().map(|column| (column.heading(), column.unit));
    let headings: Vec<_> =
        of_flows.chain(more.iter().map(|column| (column.heading(), column.unit))).collect();
    let aligned = headings.iter().map(|(heading, unit)| (heading.as_str(), align(*unit)));
    let mut table = Table::new(aligned);
    for row in rows {
        let cells = columns.iter().map(|column| column.cell(flow(row)));
        table.row(cells.chain(more.iter().map(|column| column.cell(row))));
    }
    table.render()
}

/// Rows with these columns alone.
pub fn table_of<T>(columns: &[&Column<T>], rows: &[T]) -> String {
    let headings: Vec<(String, Align)> =
        columns.iter().map(|column| (column.heading(), align(column.unit))).collect();
    let mut table = Table::new(headings.iter().map(|(heading, align)| (heading.as_str(), *align)));
    for row in rows {
        table.row(columns.iter().map(|column| column.cell(row)));
    }
    table.render()
}

fn align(unit: Unit) -> Align {
    if unit.is_text() { Align::Left } else { Align::Right }
}

pub fn is_shown<'a, T: 'static>(
    column: &Column<T>,
    mut rows: impl Iterator<Item = &'a T>,
    is_wide: bool,
) -> bool {
    match column.shown {
        Shown::Always => true,
        Shown::Where(says_something) => is_wide || rows.any(says_something),
        Shown::Wide => is_wide,
        Shown::Json => false,
    }
}

/// The help of the columns in `--help`.
pub fn help() -> String {
    let shown = FLOW_COLUMNS.iter().filter(|column| !matches!(column.shown, Shown::Json));
    let lines = table::pairs(shown.map(|column| (column.heading(), column.plain_help())));
    format!("Columns:\n{lines}\ndocs/seeing.md explains what LIMITED-BY says.")
}

#[cfg(test)]
mod tests {
    use vcc_view::Rates;
    use vcc_view::testing::flow;

    use super::*;

    #[test]
    fn columns_are_shown_where_they_say_something() {
        let plain = flow("192.0.2.1:40000", "192.0.2.2:80");
        let text = table(std::slice::from_ref(&plain), false);
        let [header, line] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
        assert!(!header.contains("RATE") && !header.contains("POLICED"), "{text}");
        for word in ["192.0.2.1:40000", "14.1 KiB", "1.25 ms", "underlay"] {
            assert!(line.contains(word), "{word}: {text}");
        }
        let mut policed = plain.clone();
        policed.state.0.policed = 7;
        policed.rates = Some(Rates { goodput_bits_per_s: 9.41e6, ..Default::default() });
        let text = table(&[plain.clone(), policed], false);
        assert!(text.contains("POLICED") && text.contains("9.41 Mbit/s"), "{text}");
        let wide = table(&[plain], true);
        let in_table = FLOW_COLUMNS.iter().filter(|column| !matches!(column.shown, Shown::Json));
        for column in in_table {
            assert!(wide.contains(&column.heading()) && help().contains(&column.heading()));
        }
    }
}
