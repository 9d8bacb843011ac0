use super::*;
use crate::report::Bounds;

const RUNS: u32 = 3;

fn case(name: &str, values: &[f64]) -> CaseReport {
    let metrics = MetricReport::over(values, None).map(|report| ("ratio".to_owned(), report));
    let run = |(seed, value): (u64, &f64)| RunReport {
        seed,
        metrics: [("ratio".to_owned(), *value)].into(),
        ..crate::report::tests::run(true)
    };
    CaseReport {
        name: name.into(),
        valid: true,
        metrics: metrics.into_iter().collect(),
        verdicts: Vec::new(),
        runs: (1..).zip(values).map(run).collect(),
    }
}

fn judged(
    cases: &mut [CaseReport],
    expectation: &Expectation,
    stack: Stack,
    runs: Option<u32>,
) -> Vec<Verdict> {
    let (expected, nothing) = ([("ratio".to_owned(), expectation.clone())].into(), BTreeMap::new());
    let mut all = vec![&nothing; cases.len()];
    all[0] = &expected;
    Bench { metrics: &["ratio"], stack, runs }.judge(cases, &all);
    cases[0].verdicts.clone()
}

fn judgement(values: &[f64], expectation: &Expectation) -> Option<Judgement> {
    let mut cases = [case("own", values), case("other", &[2.0, 2.0, 2.0])];
    let verdicts = judged(&mut cases, expectation, Stack::NewReno, Some(RUNS));
    verdicts.first().map(|verdict| verdict.judgement)
}

fn within(min: f64, max: f64) -> Expectation {
    Expectation { min: Some(min), max: Some(max), ..Expectation::default() }
}

#[test]
fn a_verdict_is_as_sure_as_the_runs_make_it() {
    let bounds = within(0.9, 1.1);
    for (values, expected) in [
        ([0.9, 1.0, 1.1], Judgement::Holds),
        ([0.95, 1.0, 1.2], Judgement::Undecided),
        ([0.5, 1.2, 1.3], Judgement::Undecided),
        ([0.5, 0.6, 0.89], Judgement::Fails),
        ([1.11, 1.2, 1.3], Judgement::Fails),
        ([0.5, 0.6, 0.9], Judgement::Undecided),
    ] {
        assert_eq!(judgement(&values, &bounds), Some(expected), "{values:?}");
    }
    let at_least = Expectation { min: Some(0.9), ..Expectation::default() };
    assert_eq!(judgement(&[0.9, 5.0, 9.0], &at_least), Some(Judgement::Holds));
}

/// A native flow breaks such bounds in one run of three, and keeps them over many.
#[test]
fn more_runs_decide_what_few_leave_open() {
    let bounds = within(0.88, 1.12);
    assert_eq!(judgement(&[0.81, 0.88, 1.04], &bounds), Some(Judgement::Undecided));
    let many: Vec<f64> = (0..21).map(|run| 0.81 + 0.018 * f64::from(run)).collect();
    assert_eq!(judgement(&many, &bounds), Some(Judgement::Holds));
}

#[test]
fn runs_that_are_too_few_or_too_short_are_not_judged() {
    let mut cases = [case("own", &[1.0; 9])];
    let verdicts = judged(&mut cases, &within(0.9, 1.1), Stack::NewReno, None);
    let [verdict] = &verdicts[..] else { panic!("{verdicts:?}") };
    assert_eq!((verdict.judgement, verdict.value), (Judgement::NotJudged, Some(1.0)));
    cases[0].valid = false;
    let verdicts = judged(&mut cases, &within(0.9, 1.1), Stack::NewReno, Some(RUNS));
    assert_eq!(verdicts[0].judgement, Judgement::NotJudged);
}

/// A transfer that never ended has no completion time: a missing metric must not hold.
#[test]
fn a_metric_that_runs_do_not_have_does_not_hold() {
    let bounds = within(0.9, 1.1);
    assert_eq!(judgement(&[], &bounds), Some(Judgement::Fails));
    assert_eq!(judgement(&[1.0, 1.0], &bounds), Some(Judgement::Undecided));
}

#[test]
fn the_modern_stack_can_have_its_own() {
    let modern = Some(Bounds { min: None, max: Some(0.5) });
    let low = Expectation { max: Some(0.2), modern, ..Expectation::default() };
    for (stack, expected) in [(Stack::NewReno, Judgement::Fails), (Stack::Modern, Judgement::Holds)]
    {
        let mut cases = [case("own", &[0.3; 3])];
        let verdicts = judged(&mut cases, &low, stack, Some(RUNS));
        assert_eq!(verdicts[0].judgement, expected);
    }
}

#[test]
fn a_relation_is_a_quotient_and_needs_both_cases() {
    let relation = |to: &str| Expectation {
        relative_to: Some(to.into()),
        max: Some(0.5),
        ..Expectation::default()
    };
    assert_eq!(judgement(&[0.9, 0.9, 1.0], &relation("other")), Some(Judgement::Holds));
    assert_eq!(judgement(&[0.9, 0.9, 1.1], &relation("other")), Some(Judgement::Undecided));
    assert_eq!(judgement(&[1.1, 1.2, 1.3], &relation("other")), Some(Judgement::Fails));
    assert_eq!(judgement(&[0.1; 3], &relation("missing")), Some(Judgement::NotJudged));
    let mut cases = [case("own", &[0.1; 3]), case("other", &[0.0, 2.0, 2.0])];
    let verdicts = judged(&mut cases, &relation("other"), Stack::NewReno, Some(RUNS));
    assert_eq!(verdicts[0].judgement, Judgement::Undecided, "over what may be 0");
    cases[1].valid = false;
    let verdicts = judged(&mut cases, &relation("other"), Stack::NewReno, Some(RUNS));
    assert_eq!(verdicts[0].judgement, Judgement::NotJudged, "over what does not count");
}

/// Runs that differ by chance, in both cases alike.
#[test]
fn a_relation_is_judged_run_by_run() {
    let same = Expectation {
        relative_to: Some("other".into()),
        max: Some(1.02),
        ..Expectation::default()
    };
    let by_chance = [5.0, 9.0, 7.0, 6.0, 8.0];
    let mut cases = [case("own", &by_chance), case("other", &by_chance)];
    let [verdict] = &judged(&mut cases, &same, Stack::NewReno, Some(RUNS))[..] else { panic!() };
    assert_eq!((verdict.judgement, verdict.value), (Judgement::Holds, Some(1.0)));
    assert_eq!(verdict.reach.map(|it| (it.low, it.high, it.certainty)), Some((1.0, 1.0, 0.9375)));
    // Runs of a live machine have no seed of their own.
    cases.iter_mut().flat_map(|case| &mut case.runs).for_each(|run| run.seed = 1);
    let [verdict] = &judged(&mut cases, &same, Stack::NewReno, Some(RUNS))[..] else { panic!() };
    assert_eq!((verdict.judgement, verdict.value), (Judgement::Holds, Some(1.0)));
    // The other's run of that number is invalid.
    cases[1].runs[1].valid = false;
    cases[0].runs[1].metrics.insert("ratio".into(), 900.0);
    let [verdict] = &judged(&mut cases, &same, Stack::NewReno, Some(RUNS))[..] else { panic!() };
    assert_eq!(verdict.judgement, Judgement::Holds);
}

/// One seed of ten that stalls changes no median.
#[test]
fn a_run_that_stalls_fails_where_each_is_bounded() {
    let mut values = [912.0; 10];
    let steady = Expectation { min: Some(900.0), spread: Some(0.25), ..Expectation::default() };
    assert_eq!(judgement(&values, &steady), Some(Judgement::Holds));
    let lone = Expectation { spread: Some(0.25), ..Expectation::default() };
    for (value, expected) in [
        (685.0, Judgement::Holds),
        (217.0, Judgement::Fails),
        (1139.0, Judgement::Holds),
        (1141.0, Judgement::Fails),
    ] {
        values[3] = value;
        assert_eq!(judgement(&values, &steady), Some(expected), "{value}");
        assert_eq!(judgement(&values, &lone), Some(expected), "{value}");
    }
    assert_eq!(judgement(&values, &Expectation { spread: None, ..steady }), Some(Judgement::Holds));
    assert_eq!(judgement(&[5.0, 5.0], &lone), Some(Judgement::Undecided), "too few runs have it");
    assert_eq!(judgement(&[0.0; 3], &lone), Some(Judgement::Holds));
}

#[test]
fn what_is_required_is_explained_in_words() {
    let both = Expectation {
        min: Some(0.97),
        relative_to: Some("other".into()),
        spread: Some(0.25),
        ..Expectation::default()
    };
    let mut cases = [case("own", &[2.0; 3]), case("other", &[2.0; 3])];
    let wanted = |expectation: &Expectation, cases: &mut [CaseReport]| {
        let verdicts = judged(cases, expectation, Stack::NewReno, Some(RUNS));
        verdicts[0].wanted(verdicts[0].relative_to.as_deref())
    };
    let each = "each run within 25 % of the median";
    assert_eq!(wanted(&both, &mut cases), format!("at least 0.97 times other, {each}"));
    let lone = Expectation { min: None, relative_to: None, ..both };
    assert_eq!(wanted(&lone, &mut cases), each);
}

#[test]
fn a_figure_without_bounds_is_no_verdict() {
    let paper = Expectation { paper: Some(0.1), ..Expectation::default() };
    assert_eq!(judgement(&[5.0; 3], &paper), None);
}
