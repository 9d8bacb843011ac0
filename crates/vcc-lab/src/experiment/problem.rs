//! An error in an experiment file: the path of the value, and what is wrong with it.

use std::ops::Range;

/// One step from a table or an array to what is in it.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Key(String),
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.into())
    }
}

impl From<&String> for Step {
    fn from(key: &String) -> Self {
        Self::Key(key.clone())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// `field!["cases", 2, "name"]`
macro_rules! field {
    ($($step:expr),* $(,)?) => { vec![$($crate::experiment::problem::Step::from($step)),*] };
}
pub(crate) use field;

/// An error in a file.
#[derive(Debug)]
pub enum Problem {
    /// The value at this path is wrong.
    At { path: Vec<Step>, text: String },
    /// The TOML parser's error at a part of the text.
    Syntax { span: Range<usize>, text: String },
}

impl Problem {
    pub fn new(path: Vec<Step>, text: impl Into<String>) -> Self {
        Self::At { path, text: text.into() }
    }
}

impl From<toml::de::Error> for Problem {
    fn from(error: toml::de::Error) -> Self {
        let text = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        Self::Syntax { span: error.span().unwrap_or_default(), text }
    }
}
