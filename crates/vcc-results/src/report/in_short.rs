//! The closing sentence of an experiment that shows a problem and its cure, with the measured
//! figures.

mod spec;

pub use spec::{InShort, Seen};

use super::CaseReport;
use crate::result::statistics::median;

/// None if a case was not run. If no run is valid, uses the invalid ones and states it.
pub(super) fn sentence(spec: &InShort, cases: &[CaseReport]) -> Option<String> {
    let find = |seen: &Seen| cases.iter().find(|case| case.name == seen.case);
    let (problem, cure) = (find(&spec.problem)?, find(&spec.cure)?);
    let doubts: Vec<String> =
        [problem, cure].iter().filter_map(|case| doubt(case, &spec.metric)).collect();
    let [problem, cure] = [problem, cure].map(|case| figure(case, &spec.metric));
    let (Some(problem), Some(cure)) = (problem, cure) else {
        return Some(format!("No summary: no run of a case has '{}'.", spec.metric));
    };
    let mut text =
        spec.text.replace("{problem}", &percent(problem)).replace("{cure}", &percent(cure));
    for (what, seen, value) in [("problem", &spec.problem, problem), ("cure", &spec.cure, cure)] {
        if !seen.is_shown_by(value) {
            text += &format!(
                " The {what} did NOT show: '{}' should be {}.",
                seen.case,
                bounds(seen.min, seen.max)
            );
        }
    }
    if !doubts.is_empty() {
        text += &format!(
            " But these runs are NOT valid ({}): run it again on a less busy machine.",
            doubts.join("; ")
        );
    }
    Some(text)
}

/// By the valid runs, or by all if no run is valid.
fn figure(case: &CaseReport, metric: &str) -> Option<f64> {
    let counted = case.metrics.get(metric).map(|it| it.median);
    let values = || case.runs.iter().filter_map(|run| run.metrics.get(metric).copied());
    counted.or_else(|| median(&values().collect::<Vec<_>>()))
}

/// Why no run of a case is valid.
fn doubt(case: &CaseReport, metric: &str) -> Option<String> {
    let reason = case.runs.iter().flat_map(|run| &run.reasons).next()?;
    (!case.metrics.contains_key(metric)).then(|| format!("'{}': {reason}", case.name))
}

fn bounds(min: Option<f64>, max: Option<f64>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("{} to {}", percent(min), percent(max)),
        (Some(min), None) => format!("at least {}", percent(min)),
        (None, Some(max)) => format!("at most {}", percent(max)),
        (None, None) => "anything".into(),
    }
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 10.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::MetricReport;
    use crate::report::tests::run;

    fn spec() -> InShort {
        let seen = |case: &str, min, max| Seen { case: case.into(), min, max };
        InShort {
            metric: "ratio".into(),
            text: "What was {problem} is now {cure}.".into(),
            problem: seen("without", None, Some(0.5)),
            cure: seen("with", Some(0.68), Some(1.32)),
        }
    }

    fn case(name: &str, value: Option<f64>) -> CaseReport {
        let metrics = value.and_then(|value| MetricReport::over(&[value], None));
        CaseReport {
            name: name.into(),
            valid: value.is_some(),
            metrics: metrics.map(|it| ("ratio".to_owned(), it)).into_iter().collect(),
            verdicts: Vec::new(),
            runs: vec![run(value.is_some())],
        }
    }

    fn shown(without: f64, with: f64) -> String {
        let cases = [case("without", Some(without)), case("with", Some(with))];
        sentence(&spec(), &cases).unwrap()
    }

    #[test]
    fn what_was_measured_is_what_is_said() {
        assert_eq!(shown(0.0951, 1.144), "What was 9.5 % is now 114 %.");
        assert_eq!(shown(0.2, 0.955), "What was 20 % is now 96 %.");
    }

    #[test]
    fn what_did_not_show_is_not_claimed() {
        let text =
            "What was 9.5 % is now 12 %. The cure did NOT show: 'with' should be 68 % to 132 %.";
        assert_eq!(shown(0.095, 0.12), text);
        let healthy = shown(0.9, 1.0);
        assert!(healthy.ends_with("The problem did NOT show: 'without' should be at most 50 %."));
    }

    /// The first that somebody sees of it must not be silent for a busy machine.
    #[test]
    fn runs_that_do_not_count_are_said_not_to() {
        let mut cases = [case("without", Some(0.1)), case("with", None)];
        cases[1].runs[0].metrics.insert("ratio".into(), 1.0);
        let text = sentence(&spec(), &cases).unwrap();
        assert!(text.starts_with("What was 10 % is now 100 %. But these runs"), "{text}");
        assert!(text.contains("are NOT valid ('with': too late): run it again"), "{text}");
        cases[1].runs[0].metrics.clear();
        let text = sentence(&spec(), &cases).unwrap();
        assert_eq!(text, "No summary: no run of a case has 'ratio'.");
        assert_eq!(sentence(&spec(), &cases[..1]), None, "it was not to be run");
    }
}
