//! The definition of a column of a table of `T`; [`crate::columns`] lists all columns.

use std::cmp::Ordering;

use crate::flow::FlowView;
use crate::value::{Unit, Value};

pub struct Column<T: 'static = FlowView> {
    /// In words, as the page heads it.
    pub name: &'static str,
    /// In JSON, with the unit.
    pub key: &'static str,
    pub unit: Unit,
    pub value: fn(&T) -> Value<'_>,
    /// The description: for docs/seeing.md, and without backticks for `--help` and the page.
    pub help: &'static str,
    pub shown: Shown<T>,
    /// The name for `--sort`, and for `--with` if it is a counter.
    pub sort: Option<&'static str>,
    pub top: Option<Top>,
    pub page: Page,
}

/// When `vcc flows` has it.
pub enum Shown<T: 'static = FlowView> {
    Always,
    /// If it says something about any of the flows.
    Where(fn(&T) -> bool),
    /// With `--wide`.
    Wide,
    /// In JSON alone.
    Json,
}

/// In `vcc top`.
#[derive(Clone, Copy)]
pub struct Top {
    /// A narrow terminal drops the columns of the highest ranks.
    pub rank: u8,
    /// Sorts by it.
    pub key: Option<char>,
    /// The least width, so that changing cells do not move the columns.
    pub width_chars: usize,
}

/// The place of a column on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// In the table, and in the detail of one row.
    Table,
    /// In the table alone.
    TableAlone,
    /// In the detail alone.
    Detail,
    Nowhere,
}

impl<T> Column<T> {
    /// In JSON alone, until the methods below place it elsewhere.
    pub const fn new(
        name: &'static str,
        key: &'static str,
        unit: Unit,
        value: fn(&T) -> Value<'_>,
        help: &'static str,
    ) -> Self {
        let (shown, sort, top, page) = (Shown::Json, None, None, Page::Nowhere);
        Self { name, key, unit, value, help, shown, sort, top, page }
    }

    /// The same under another name.
    pub const fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    pub const fn always(self) -> Self {
        Self { shown: Shown::Always, ..self }
    }

    pub const fn wide(self) -> Self {
        Self { shown: Shown::Wide, ..self }
    }

    /// Only if it says something about any of the flows.
    pub const fn given(self, says_something: fn(&T) -> bool) -> Self {
        Self { shown: Shown::Where(says_something), ..self }
    }

    pub const fn sort(self, name: &'static str) -> Self {
        Self { sort: Some(name), ..self }
    }

    pub const fn top(self, rank: u8, key: Option<char>) -> Self {
        let width_chars = self.unit.width_chars();
        Self { top: Some(Top { rank, key, width_chars }), ..self }
    }

    /// In `vcc top`, where it sorts nothing and is at least so wide.
    pub const fn top_wide(self, rank: u8, width_chars: usize) -> Self {
        Self { top: Some(Top { rank, key: None, width_chars }), ..self }
    }

    pub const fn page(self, page: Page) -> Self {
        Self { page, ..self }
    }

    /// The heading of the column in text tables.
    pub fn heading(&self) -> String {
        self.name.to_uppercase().replace(' ', "-")
    }

    pub fn is_in_page_table(&self) -> bool {
        [Page::Table, Page::TableAlone].contains(&self.page)
    }

    pub fn plain_help(&self) -> String {
        self.help.replace('`', "")
    }

    pub fn cell(&self, row: &T) -> String {
        self.unit.cell(&(self.value)(row))
    }

    /// Unknown values are last in both directions.
    pub fn compare(&self, a: &T, b: &T, is_descending: bool) -> Ordering {
        let (a, b) = ((self.value)(a), (self.value)(b));
        match (a.is_known(), b.is_known()) {
            (true, true) if is_descending => a.compare(&b).reverse(),
            (true, true) => a.compare(&b),
            (a_known, b_known) => b_known.cmp(&a_known),
        }
    }

    /// Whether a word that is looked for may be in it.
    pub fn is_searched(&self) -> bool {
        self.unit.is_text() && matches!(self.shown, Shown::Always | Shown::Where(_))
    }
}
