//! Cases: what is measured, and what is expected of it.

use super::problem::{Problem, field};
use super::{Kind, Resolved};
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
pub fn check<K: Kind>(resolved: &Resolved<K>, headline: Option<&Headline>) -> Checked {
    check_names(&resolved.cases)?;
    for case in &resolved.cases {
        for (metric, expectation) in &case.expect {
            check_expectation(resolved, case, metric, expectation).map_err(|text| {
                Problem::new(field!["cases", case.entry, "expect", metric], text)
            })?;
        }
    }
    let Some(Headline { metric, case }) = headline else { return Ok(()) };
    let checked = named(resolved, case).and_then(|case| check_metric(resolved, case, metric));
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

/// Fails where a case expects something that no run of it can decide: of a metric that it does not have,
/// within bounds that no value meets, or relative to a case that is no other or lacks the metric.
fn check_expectation<K: Kind>(
    resolved: &Resolved<K>,
    case: &Case<K::Parameters>,
    metric: &str,
    expectation: &Expectation,
) -> Result<(), String> {
    check_metric(resolved, case, metric)?;
    check_bounds(expectation.min, expectation.max)?;
    let modern = expectation.modern.unwrap_or_default();
    check_bounds(modern.min, modern.max)?;
    if let Some(spread) = expectation.spread.filter(|spread| !(0.0..=1.0).contains(spread)) {
        return Err(format!("spread {spread} is not within 0 and 1"));
    }
    if expectation.paper_quotient.is_some() && expectation.relative_to.is_none() {
        return Err("paper_quotient needs relative_to, the case that it is a quotient with".into());
    }
    match &expectation.relative_to {
        Some(name) if *name == case.name => Err(format!("'{name}' is compared with itself")),
        Some(name) => check_metric(resolved, named(resolved, name)?, metric),
        None => Ok(()),
    }
}

/// A number that is none, or endless, is a bound of nothing.
fn check_bounds(min: Option<f64>, max: Option<f64>) -> Result<(), String> {
    for (name, bound) in [("min", min), ("max", max)] {
        if let Some(bound) = bound.filter(|bound| !bound.is_finite()) {
            return Err(format!("{name} {} is no number", bound.to_string().to_lowercase()));
        }
    }
    match (min, max) {
        (Some(min), Some(max)) if min > max => Err(format!("min {min} is above max {max}")),
        _ => Ok(()),
    }
}

fn check_metric<K: Kind>(
    resolved: &Resolved<K>,
    case: &Case<K::Parameters>,
    metric: &str,
) -> Result<(), String> {
    resolved.metrics.check(metric)?;
    match K::lacks(resolved, case, metric) {
        Some(why) => Err(format!("no run of '{}' has it: {why}", case.name)),
        None => Ok(()),
    }
}

fn named<'a, K: Kind>(
    resolved: &'a Resolved<K>,
    name: &str,
) -> Result<&'a Case<K::Parameters>, String> {
    let case = resolved.cases.iter().find(|case| case.name == name);
    case.ok_or_else(|| format!("there is no case '{name}'"))
}
