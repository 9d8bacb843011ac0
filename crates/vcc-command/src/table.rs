//! Aligned columns.

use crate::output::printable_line;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

pub struct Table {
    aligns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Align)>) -> Self {
        let columns = columns.into_iter().map(|(name, align)| (name.to_owned(), align));
        let (header, aligns) = columns.unzip();
        Self { aligns, rows: vec![header] }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        // Escapes make a cell wider: they are made before the widths are computed.
        let row: Vec<String> =
            cells.into_iter().map(|cell| printable_line(&cell).into_owned()).collect();
        assert_eq!(row.len(), self.aligns.len(), "a cell for each column");
        self.rows.push(row);
    }

    pub fn render(&self) -> String {
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.aligns.len()).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&self.aligns).zip(&widths);
            let padded: Vec<String> = cells
                .map(|((cell, align), &width)| match align {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                })
                .collect();
            text.push_str(padded.join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

/// Names with their values, a line each.
pub fn pairs(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("  {name:<width$}  {value}\n")).collect()
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
}
