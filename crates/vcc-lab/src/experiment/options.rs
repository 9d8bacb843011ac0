//! Options of a run.

use crate::base::error::{Error, Result};
use vcc_results::result::{Backend, Stack};

#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Valid runs of each case; the experiment's own number if left out.
    pub runs: Option<u32>,
    /// Shorter and fewer runs: figures, no verdict.
    pub quick: bool,
    pub stack: Option<Stack>,
    pub seed: u64,
    /// Only these cases; all if empty.
    pub cases: Vec<String>,
    /// The experiment's own backend if left out.
    pub backend: Option<Backend>,
    /// Keep what was recorded over time in the report of each run.
    pub keep_series: bool,
    /// The most runs at once, where time is virtual; the number of CPUs if left out.
    pub jobs: Option<u32>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            runs: None,
            quick: false,
            stack: None,
            seed: 1,
            cases: Vec::new(),
            backend: None,
            keep_series: false,
            jobs: None,
        }
    }
}

impl RunOptions {
    /// The cases to run, of all that an experiment has.
    pub fn chosen<'a, C>(
        &self,
        experiment: &str,
        all: &'a [C],
        name_of: impl Fn(&C) -> &str,
    ) -> Result<Vec<&'a C>> {
        let names = &self.cases;
        let is_missing = |name: &&String| !all.iter().any(|case| name_of(case) == **name);
        if let Some(name) = names.iter().find(is_missing) {
            let known: Vec<&str> = all.iter().map(&name_of).collect();
            return Err(Error::NoSuchCase {
                experiment: experiment.into(),
                case: name.clone(),
                known: known.join(", "),
            });
        }
        let is_chosen =
            |case: &&C| names.is_empty() || names.iter().any(|name| name_of(case) == *name);
        Ok(all.iter().filter(is_chosen).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_does_not_exist_is_refused_with_those_that_do() {
        let options = RunOptions { cases: vec!["wihtout".into()], ..RunOptions::default() };
        let known = ["without", "with", "with-tso"];
        let error = options.chosen("vcc-fig11", &known, |name| name).unwrap_err().to_string();
        assert!(
            error.contains("'wihtout'") && error.contains("without, with, with-tso"),
            "{error}"
        );
        assert_eq!(RunOptions::default().chosen("x", &known, |name| name).unwrap().len(), 3);
        let options = RunOptions { cases: vec!["with".into()], ..RunOptions::default() };
        assert_eq!(options.chosen("x", &known, |name| name).unwrap(), [&"with"]);
    }
}
