//! The figure that stands for an experiment in the table of all results.

use serde::Deserialize;

/// `METRIC CASE` in an experiment file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Headline {
    pub metric: String,
    pub case: String,
}

impl TryFrom<String> for Headline {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.split_whitespace().collect::<Vec<_>>()[..] {
            [metric, case] => Ok(Self { metric: metric.into(), case: case.into() }),
            _ => Err(format!("'{text}' is not 'METRIC CASE'")),
        }
    }
}
