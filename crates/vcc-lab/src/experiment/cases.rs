//! Checks of cases that experiments of every kind share.

use super::problem::{Problem, field};
use std::collections::BTreeMap;
use vcc_results::report::{Expectation, Headline};

type Checked = Result<(), Problem>;

/// Fails where two cases have one name. Each has its index in the file.
pub fn check_names<'a>(cases: impl Iterator<Item = (usize, &'a str)>) -> Checked {
    let mut names: Vec<&str> = Vec::new();
    for (index, name) in cases {
        if names.contains(&name) {
            let text = format!("two cases are called '{name}': rename one");
            return Err(Problem::new(field!["cases", index, "name"], text));
        }
        names.push(name);
    }
    Ok(())
}

/// Fails if the experiment's headline figure is not one of its metrics and cases.
pub fn check_headline<'a>(
    headline: Option<&Headline>,
    check_metric: impl Fn(&str) -> Result<(), String>,
    mut cases: impl Iterator<Item = &'a str>,
) -> Checked {
    let Some(Headline { metric, case }) = headline else { return Ok(()) };
    let wrong = |text: String| Problem::new(field!["headline"], text);
    check_metric(metric).map_err(wrong)?;
    match cases.any(|name| name == case) {
        true => Ok(()),
        false => Err(wrong(format!("there is no case '{case}'"))),
    }
}

/// Fails where a case expects something of a metric that there is not, within bounds that no value
/// meets, or relative to a case that it cannot be compared with.
pub fn check_expectations(
    index: usize,
    expect: &BTreeMap<String, Expectation>,
    check_metric: impl Fn(&str) -> Result<(), String>,
    check_other: impl Fn(&str) -> Result<(), String>,
) -> Checked {
    for (metric, expectation) in expect {
        let wrong = |text: String| Problem::new(field!["cases", index, "expect", metric], text);
        check_metric(metric).map_err(wrong)?;
        if let (Some(min), Some(max)) = (expectation.min, expectation.max) {
            if min > max {
                return Err(wrong(format!("min {min} is above max {max}")));
            }
        }
        if let Some(spread) = expectation.spread.filter(|spread| !(0.0..=1.0).contains(spread)) {
            return Err(wrong(format!("spread {spread} is not within 0 and 1")));
        }
        if let Some(other) = &expectation.relative_to {
            check_other(other).map_err(wrong)?;
        }
    }
    Ok(())
}
