//! Which of the policies fit a node together. If they exceed its limits, changed policies are reverted
//! to the generation in force, or left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use vcc_policy::{Policy, Problem, Severity};

use crate::check::Reading;
use crate::choose::{LastGood, Standing, Staying, choose, has_changed};
use crate::cluster_state::ClusterState;
use crate::document::{Document, Field};
use crate::on_node::Part;
use crate::render::{Rendered, render};
use crate::spec::Presence;

/// All policies, of which some may not fit.
struct Fit<'a> {
    newest: &'a [Arc<Reading>],
    last_good: &'a LastGood,
    node: &'a str,
    cluster: &'a ClusterState,
}

/// Faults, by the index of the policy.
type Faults = BTreeMap<usize, Fault>;

#[derive(Default)]
struct Fault {
    why: Vec<String>,
    /// Else it only exceeds the limits together with the others.
    is_own: bool,
}

struct Blamed {
    chosen: Arc<Reading>,
    refused: Vec<String>,
    is_own: bool,
}

/// The standing of each policy, and what the node needs of those that fit; or why what is in force stays, for
/// the node has changed in such a way that this is too much for it.
pub fn fit(
    newest: &[Arc<Reading>],
    last_good: &LastGood,
    node: &str,
    cluster: &ClusterState,
) -> (Vec<Standing>, Result<Rendered, String>) {
    let fit = Fit { newest, last_good, node, cluster };
    let mut faulty = Staying::new();
    // Those without a fault of their own, in the order in which they were left out.
    let mut left_out: Vec<String> = Vec::new();
    let mut is_last_too_much = false;
    loop {
        let (mut standings, result) = fit.attempt(&faulty);
        let faults = match result {
            Ok(rendered) => {
                if is_last_too_much {
                    left_out.pop();
                }
                let (standings, rendered) =
                    fit.admit_again((standings, rendered), faulty, left_out);
                return (standings, Ok(rendered));
            }
            Err(faults) => faults,
        };
        let blamed = blame(&mut standings, faults);
        // The only alternative is the edition in force.
        if blamed.is_empty() || !blamed.iter().all(|it| has_changed(last_good, &it.chosen)) {
            let why = blamed.first().map(|it| {
                let why = it.refused.first().map_or("", String::as_str);
                format!("the VccPolicy `{}`, {why}", it.chosen.object.name)
            });
            return (standings, Err(why.unwrap_or_default()));
        }
        is_last_too_much = blamed.iter().all(|it| !it.is_own);
        for Blamed { chosen, refused, is_own } in blamed {
            let name = &chosen.object.name;
            if !is_own {
                left_out.push(name.clone());
            }
            faulty.insert(name.clone(), refused);
        }
    }
}

impl Fit<'_> {
    fn attempt(&self, faulty: &Staying) -> (Vec<Standing>, Result<Rendered, Faults>) {
        let standings = choose(self.newest, self.last_good, faulty);
        let parts = parts(&standings, self.node);
        let rendered = render(&parts, self.cluster);
        let result = match Policy::parse(rendered.document.text(), "the node's policy") {
            Ok(_) => Ok(rendered),
            Err(problems) => Err(self.faults(&problems.problems, &parts, &rendered.document)),
        };
        (standings, result)
    }

    /// An unchanged policy is at fault only together with a changed one.
    fn faults(&self, problems: &[Problem], parts: &[Part<'_>], document: &Document) -> Faults {
        let dispensable = self.dispensable(parts);
        let is_own = |field: &Field| {
            dispensable.is_none() || has_changed(self.last_good, parts[field.policy].0)
        };
        let mut faults = Faults::new();
        for problem in problems.iter().filter(|it| it.severity == Severity::Error) {
            let reason = document.message(problem);
            let field = document.field_of(problem).filter(|_| !problem.is_of_all);
            let (part, why, is_own) = match (field, dispensable) {
                (Some(field), _) if is_own(field) => {
                    (field.policy, format!("{}: on this node: {reason}", field.path), true)
                }
                (Some(Field { policy, path }), Some(part)) => {
                    let other = &parts[*policy].0.object.name;
                    let beside = format!("together with the VccPolicy `{other}` ({path})");
                    (part, format!("spec: on this node, {beside}: {reason}"), false)
                }
                (_, part) => {
                    let last = parts.len().saturating_sub(1);
                    (part.unwrap_or(last), format!("spec: on this node: {reason}"), false)
                }
            };
            let fault = faults.entry(part).or_default();
            fault.why.push(why);
            fault.is_own |= is_own;
        }
        faults
    }

    /// Of what is too much together, the one to do without: the last in the order of those that have
    /// changed and have something for this node.
    fn dispensable(&self, parts: &[Part<'_>]) -> Option<usize> {
        parts.iter().rposition(|(reading, presence)| {
            *presence != Presence::Absent && has_changed(self.last_good, reading)
        })
    }

    /// Without those that were left out last, there may be room for those before.
    fn admit_again(
        &self,
        mut fitting: (Vec<Standing>, Rendered),
        mut faulty: Staying,
        left_out: Vec<String>,
    ) -> (Vec<Standing>, Rendered) {
        for name in left_out.into_iter().rev() {
            let why = faulty.remove(&name);
            match self.attempt(&faulty) {
                (standings, Ok(rendered)) => fitting = (standings, rendered),
                (_, Err(_)) => faulty.extend(why.map(|why| (name, why))),
            }
        }
        fitting
    }
}

/// Says why those are refused that are at fault, and returns them.
fn blame(standings: &mut [Standing], faults: Faults) -> Vec<Blamed> {
    let mut parts: Vec<(&mut Vec<String>, &Arc<Reading>)> = standings
        .iter_mut()
        .filter_map(|it| Some((&mut it.refused, it.chosen.as_ref()?)))
        .collect();
    let mut blamed = Vec::new();
    for (part, fault) in faults {
        let Some((refused, chosen)) = parts.get_mut(part) else { continue };
        refused.extend(fault.why);
        let (chosen, refused) = (Arc::clone(chosen), refused.clone());
        blamed.push(Blamed { chosen, refused, is_own: fault.is_own });
    }
    blamed
}

fn parts<'a>(standings: &'a [Standing], node: &str) -> Vec<Part<'a>> {
    let chosen = standings.iter().filter_map(|standing| standing.chosen.as_deref());
    chosen.map(|reading| (reading, reading.spec.rollout.presence(node))).collect()
}
