//! The order of connections, by columns of flows or of captures.

use std::cmp::Ordering;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::columns::{MORE, Row};
use crate::commands::selection::{PartArguments, SortBy, sort_names, value};

/// The order of connections, and how many are shown
#[derive(clap::Args, Clone)]
#[command(next_help_heading = "How they are shown")]
pub struct Order {
    /// Sort by this column: the largest number first, names from A to Z
    #[arg(long, value_name = "KEY", default_value = "place", value_parser = parser())]
    sort: By,

    #[command(flatten)]
    pub part: PartArguments,
}

#[derive(Clone, Copy)]
enum By {
    Flow(SortBy),
    More(&'static vcc_view::Column<Row>),
}

fn parser() -> impl TypedValueParser<Value = By> {
    let more = MORE.iter().filter_map(|column| Some(value(column.sort?, column)));
    PossibleValuesParser::new(sort_names().chain(more)).map(|name| {
        let more = MORE.iter().find(|column| column.sort == Some(&*name));
        more.map_or_else(|| By::Flow(SortBy::from_name(&name)), By::More)
    })
}

impl Order {
    pub fn compare(&self, one: &Row, other: &Row) -> Ordering {
        let by_place = || SortBy(None).sort().compare(&one.flow, &other.flow);
        match self.sort {
            By::Flow(by) => self.part.directed(by.sort()).compare(&one.flow, &other.flow),
            By::More(column) => {
                let is_descending = column.unit.is_text() == self.part.is_reversed();
                column.compare(one, other, is_descending).then_with(by_place)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use vcc_view::sortable;

    use super::*;

    #[test]
    fn each_name_is_of_one_column() {
        let mut names: Vec<&str> = MORE.iter().filter_map(|column| column.sort).collect();
        assert!(names.len() > 5, "{names:?}");
        names.extend(sortable().map(|(name, _)| name));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
    }
}
