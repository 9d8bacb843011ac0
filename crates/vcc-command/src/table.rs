//! Aligned columns.

use comfy_table::CellAlignment;
use comfy_table::presets::NOTHING;

use crate::output::printable_line;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

impl From<Align> for CellAlignment {
    fn from(align: Align) -> Self {
        match align {
            Align::Left => Self::Left,
            Align::Right => Self::Right,
        }
    }
}

/// Blanks between two columns.
const GAP: u16 = 2;

pub struct Table {
    table: comfy_table::Table,
}

impl Table {
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Align)>) -> Self {
        let (header, aligns): (Vec<&str>, Vec<Align>) = columns.into_iter().unzip();
        let mut table = comfy_table::Table::new();
        table.load_preset(NOTHING).set_header(header);
        for (column, align) in table.column_iter_mut().zip(aligns) {
            column.set_padding((0, GAP)).set_cell_alignment(align.into());
        }
        Self { table }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        // Escapes make a cell wider: they are made before the widths are computed.
        let row: Vec<String> =
            cells.into_iter().map(|cell| printable_line(&cell).into_owned()).collect();
        assert_eq!(row.len(), self.table.column_count(), "a cell for each column");
        self.table.add_row(row);
    }

    pub fn render(&self) -> String {
        text(&self.table)
    }
}

/// Names with their values, a line each.
pub fn pairs<N: Into<String>>(rows: impl IntoIterator<Item = (N, String)>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_preset(NOTHING);
    table.add_rows(rows.into_iter().map(|(name, value)| [name.into(), value]));
    for column in table.column_iter_mut() {
        column.set_padding((GAP, 0));
    }
    text(&table)
}

fn text(table: &comfy_table::Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new([("PORT", Align::Left), ("N", Align::Right)]);
        table.row(["vnet10".into(), "1".into()]);
        table.row(["a".into(), "1000".into()]);
        assert_eq!(table.render(), "PORT       N\nvnet10     1\na       1000\n");
        table.row(["b\x1b[2J\n".into(), "2".into()]);
        assert!(table.render().ends_with("\nb\\u001b[2J\\u000a     2\n"), "{}", table.render());
    }

    #[test]
    fn a_character_may_take_two_columns_of_the_terminal_or_none() {
        let mut table = Table::new([("TENANT", Align::Left), ("N", Align::Right)]);
        table.row(["株式会社".into(), "1".into()]);
        table.row(["cafe\u{301}".into(), "20".into()]);
        let lines = ["TENANT     N", "株式会社   1", "cafe\u{301}      20", ""];
        assert_eq!(table.render(), lines.join("\n"));
        let named = [("名", "1".to_owned()), ("abc", "2".to_owned())];
        assert_eq!(pairs(named), "  名   1\n  abc  2\n");
    }

    #[test]
    fn a_table_may_have_no_rows_and_a_cell_no_text() {
        assert_eq!(Table::new([("A", Align::Left), ("B", Align::Right)]).render(), "A  B\n");
        let mut table = Table::new([("A", Align::Left), ("B", Align::Left)]);
        table.row([String::new(), "b".into()]);
        table.row(["a".into(), String::new()]);
        assert_eq!(table.render(), "A  B\n   b\na\n");
        assert_eq!(pairs::<&str>([]), "");
    }

    #[test]
    fn a_long_cell_stays_one_line() {
        let long = "word ".repeat(1000);
        let mut table = Table::new([("A", Align::Left), ("B", Align::Left)]);
        table.row([long.clone(), "b".into()]);
        assert_eq!(table.render().lines().nth(1), Some(&*format!("{long}  b")));
    }
}
