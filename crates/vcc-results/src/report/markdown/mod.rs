//! Writes records as Markdown: a page of each, and tables between markers that a file has:
//!
//! - `<!-- measured: experiments PATTERN... -->`: a row for each record whose experiment matches;
//! - `<!-- measured: table ... -->`: rows of several experiments, named in the marker itself;
//! - `<!-- measured: bench NAME -->`: figures of `vcc-lab bench NAME`.
//!
//! `<!-- /measured -->` ends each of them. Everything outside the markers is kept, and so is every
//! block or row for which there is no record. A row without backend or stack means the experiment's
//! default.

mod bench;
mod curve;
mod document;
mod fill;
mod origin;
mod page;
mod rows;
mod summary;
mod text;

pub use fill::fill_markdown;
pub use page::page;
pub use summary::matches;

/// What is wrong with a file, and in which line.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    pub line: usize,
    pub text: String,
}

#[cfg(test)]
mod tests;
