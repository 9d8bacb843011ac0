//! The definition of a column; [`crate::COLUMNS`] lists all columns.

use crate::flow::FlowView;
use crate::value::{Unit, Value};

#[derive(Clone, Copy)]
pub struct Column {
    /// In words, as the page heads it.
    pub name: &'static str,
    /// In JSON, with the unit.
    pub key: &'static str,
    pub unit: Unit,
    pub value: fn(&FlowView) -> Value<'_>,
    /// The description: for docs/seeing.md, and without backticks for `--help` and the page.
    pub help: &'static str,
    pub shown: Shown,
    /// The name for `--sort`, and for `--with` if it is a counter.
    pub sort: Option<&'static str>,
    pub top: Option<Top>,
    pub page: Page,
}

/// When `vcc flows` has it.
#[derive(Clone, Copy)]
pub enum Shown {
    Always,
    /// If it says something about any of the flows.
    Where(fn(&FlowView) -> bool),
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
}

/// The place of a column on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// In the table of flows, and in the detail of one.
    Table,
    /// In the table alone.
    TableAlone,
    /// In the detail alone.
    Detail,
    Nowhere,
}

impl Column {
    /// In JSON alone, until the methods below place it elsewhere.
    pub const fn new(
        name: &'static str,
        key: &'static str,
        unit: Unit,
        value: fn(&FlowView) -> Value<'_>,
        help: &'static str,
    ) -> Self {
        let (shown, sort, top, page) = (Shown::Json, None, None, Page::Nowhere);
        Self { name, key, unit, value, help, shown, sort, top, page }
    }

    pub const fn always(self) -> Self {
        Self { shown: Shown::Always, ..self }
    }

    pub const fn wide(self) -> Self {
        Self { shown: Shown::Wide, ..self }
    }

    /// Only if it says something about any of the flows.
    pub const fn given(self, says_something: fn(&FlowView) -> bool) -> Self {
        Self { shown: Shown::Where(says_something), ..self }
    }

    pub const fn sort(self, name: &'static str) -> Self {
        Self { sort: Some(name), ..self }
    }

    pub const fn top(self, rank: u8, key: Option<char>) -> Self {
        Self { top: Some(Top { rank, key }), ..self }
    }

    pub const fn page(self, page: Page) -> Self {
        Self { page, ..self }
    }

    /// The heading of the column in text tables.
    pub fn heading(&self) -> String {
        self.name.to_uppercase().replace(' ', "-")
    }

    pub fn plain_help(&self) -> String {
        self.help.replace('`', "")
    }

    pub fn cell(&self, flow: &FlowView) -> String {
        self.unit.cell(&(self.value)(flow))
    }

    /// Whether a word that is looked for may be in it.
    pub fn is_searched(&self) -> bool {
        self.unit.is_text() && matches!(self.shown, Shown::Always | Shown::Where(_))
    }
}
