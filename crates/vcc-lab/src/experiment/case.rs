//! Cases: what is measured, and what is expected of it.

use super::metric::Metrics;
use super::problem::{Problem, field};
use std::collections::BTreeMap;
use vcc_results::report::{Expectation, Headline};

/// One case, ready to be run.
#[derive(Debug, Clone)]
pub struct Case<P> {
    pub name: String,
    pub expect: BTreeMap<String, Expectation>,
    /// The entry of the file that it comes from.
    pub entry: usize,
    /// What its kind must know for a run.
    pub parameters: P,
}

type Checked = Result<(), Problem>;

/// Fails where names, expectations or the headline do not fit the experiment's cases and metrics.
pub fn check<P>(cases: &[Case<P>], metrics: &Metrics, headline: Option<&Headline>) -> Checked {
    check_names(cases)?;
    let check_case = |name: &str| match cases.iter().any(|case| case.name == name) {
        true => Ok(()),
        false => Err(format!("there is no case '{name}'")),
    };
    for case in cases {
        check_expectations(case, metrics, check_case)?;
    }
    let Some(Headline { metric, case }) = headline else { return Ok(()) };
    let checked = metrics.check(metric).and_then(|()| check_case(case));
    checked.map_err(|text| Problem::new(field!["headline"], text))
}

fn check_names<P>(cases: &[Case<P>]) -> Checked {
    for (index, Case { name, entry, .. }) in cases.iter().enumerate() {
        if cases[..index].iter().any(|case| case.name == *name) {
            let text = format!("two cases are called '{name}': rename one");
            return Err(Problem::new(field!["cases", *entry, "name"], text));
        }
    }
    Ok(())
}

/// Fails where a case expects something of an unknown metric, within bounds that no value meets, or
/// relative to an unknown case.
fn check_expectations<P>(
    case: &Case<P>,
    metrics: &Metrics,
    check_case: impl Fn(&str) -> Result<(), String>,
) -> Checked {
    for (metric, expectation) in &case.expect {
        let wrong =
            |text: String| Problem::new(field!["cases", case.entry, "expect", metric], text);
        metrics.check(metric).map_err(wrong)?;
        if let (Some(min), Some(max)) = (expectation.min, expectation.max) {
            if min > max {
                return Err(wrong(format!("min {min} is above max {max}")));
            }
        }
        if let Some(spread) = expectation.spread.filter(|spread| !(0.0..=1.0).contains(spread)) {
            return Err(wrong(format!("spread {spread} is not within 0 and 1")));
        }
        if let Some(other) = &expectation.relative_to {
            check_case(other).map_err(wrong)?;
        }
    }
    Ok(())
}
