//! Writes measured figures into Markdown files, between markers that such a file has:
//!
//! - `<!-- measured: experiment ID [live|virtual] [newreno|modern] -->`: the table of one
//!   experiment;
//! - `<!-- measured: experiments PATTERN... -->`: the tables of all experiments that match, each
//!   between markers of its own, which are added in the order of the experiments' names;
//! - `<!-- measured: table ... -->`: rows of several experiments, named in the marker itself;
//! - `<!-- measured: bench NAME -->`: figures of `vcc-lab bench NAME`.
//!
//! `<!-- /measured -->` ends each of them. Everything outside the markers is kept, and so is every
//! block for which there is no result. A marker without backend or stack means the experiment's
//! default.

mod bench;
mod curve;
mod document;
mod experiment;
mod fill;
mod origin;
mod rows;
mod text;

pub use fill::{Defaults, Filled, fill_markdown};

/// What is wrong with a file, and in which line.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    pub line: usize,
    pub text: String,
}

#[cfg(test)]
mod tests;
