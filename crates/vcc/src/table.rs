//! Aligned columns.

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
    pub fn new<const N: usize>(columns: [(&str, Align); N]) -> Self {
        let header = columns.iter().map(|(name, _)| name.to_string()).collect();
        Self { aligns: columns.iter().map(|(_, align)| *align).collect(), rows: vec![header] }
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        assert_eq!(N, self.aligns.len(), "a cell for each column");
        self.rows.push(cells.into());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new([("PORT", Align::Left), ("N", Align::Right)]);
        table.row(["vnet10".into(), "1".into()]);
        table.row(["a".into(), "1000".into()]);
        assert_eq!(table.render(), "PORT       N\nvnet10     1\na       1000\n");
    }
}
