//! Which generation of each policy is in force: the newest that is fit to be and is in nobody's way,
//! else the last one that was.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::check::Reading;

/// A policy of the API server, and what a node makes of it.
#[derive(Clone, Debug)]
pub struct Standing {
    /// As the API server has it.
    pub newest: Arc<Reading>,
    /// The generation in force, if any.
    pub chosen: Option<Arc<Reading>>,
    /// Why `newest` is not in force.
    pub refused: Vec<String>,
}

/// The generations that were in force last, by their policies' names.
pub type LastGood = BTreeMap<String, Arc<Reading>>;

/// What only one policy may have.
#[derive(Default)]
struct Claims {
    priorities: HashMap<i64, String>,
    default: Option<String>,
}

impl Claims {
    /// Claims what a policy needs for itself; else says whose it is.
    fn claim(&mut self, reading: &Reading) -> Result<(), String> {
        let name = &reading.object.name;
        let priority = reading.spec.priority;
        if let Some(holder) = self.priorities.get(&priority) {
            return Err(format!(
                "spec.priority: the VccPolicy `{holder}` has the priority {priority} too, so nobody \
                 could tell which comes first: give one of them another"
            ));
        }
        if let Some(holder) = self.default.as_ref().filter(|_| reading.spec.default.is_some()) {
            return Err(format!(
                "spec.default: the VccPolicy `{holder}` has a `default` too, and there is one for all \
                 policies: leave it out of one of them"
            ));
        }
        self.priorities.insert(priority, name.clone());
        if reading.spec.default.is_some() {
            self.default = Some(name.clone());
        }
        Ok(())
    }
}

/// Of policies that are in each other's way, those keep their place that are in force and have not
/// changed, then the older ones. In the order of their priorities; those that have no place come last.
pub fn choose(newest: &[Arc<Reading>], last_good: &LastGood) -> Vec<Standing> {
    let last = |reading: &Reading| {
        let last = last_good.get(&reading.object.name)?;
        // Another object of the same name has no past.
        (last.object.uid == reading.object.uid).then_some(last)
    };
    let has_changed = |reading: &Reading| {
        last(reading).is_none_or(|last| last.object.generation != reading.object.generation)
    };
    let mut order: Vec<&Arc<Reading>> = newest.iter().collect();
    order.sort_by_key(|reading| {
        (has_changed(reading), reading.object.created, reading.object.name.clone())
    });
    let mut claims = Claims::default();
    let mut standings = Vec::new();
    for newest in order {
        let mut refused = newest.errors.clone();
        let mut chosen = None;
        if newest.is_fit() {
            match claims.claim(newest) {
                Ok(()) => chosen = Some(newest),
                Err(why) => refused.push(why),
            }
        }
        if chosen.is_none() {
            chosen = last(newest).filter(|last| last.is_fit() && claims.claim(last).is_ok());
        }
        standings.push(Standing { newest: newest.clone(), chosen: chosen.cloned(), refused });
    }
    standings.sort_by_key(|standing| {
        let place = standing.chosen.as_ref().map(|chosen| chosen.spec.priority);
        (place.is_none(), place, standing.newest.object.name.clone())
    });
    standings
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::resource::PolicyObject;

    fn policy(name: &str, generation: i64, created: i64, spec: Value) -> Arc<Reading> {
        let (name, uid) = (name.to_owned(), format!("uid of {name}"));
        let object =
            PolicyObject { name, uid, generation, created, spec: spec.into(), is_omitted: false };
        Arc::new(Reading::of(&object, &BTreeSet::new()))
    }

    fn good(readings: &[&Arc<Reading>]) -> LastGood {
        readings.iter().map(|it| (it.object.name.clone(), Arc::clone(it))).collect()
    }

    /// Name, generation in force, and the reasons why the newest is not.
    fn told(standings: &[Standing]) -> Vec<(&str, Option<i64>, String)> {
        let told = |standing: &'_ Standing| {
            let chosen = standing.chosen.as_ref().map(|chosen| chosen.object.generation);
            (chosen, standing.refused.join("; "))
        };
        standings
            .iter()
            .map(|standing| {
                let (chosen, refused) = told(standing);
                (standing.newest.object.name.as_str(), chosen, refused)
            })
            .collect()
    }

    fn spec(priority: i64) -> Value {
        json!({ "priority": priority, "rules": [{ "name": "r", "underlay": "dctcp" }] })
    }

    #[test]
    fn they_are_in_the_order_of_their_priorities() {
        let (late, early) = (policy("a", 1, 1, spec(20)), policy("b", 1, 2, spec(10)));
        let standings = choose(&[late, early], &LastGood::new());
        let expected = [("b", Some(1), String::new()), ("a", Some(1), String::new())];
        assert_eq!(told(&standings), expected);
    }

    #[test]
    fn of_a_broken_one_the_last_good_one_stays() {
        let before = policy("a", 1, 1, spec(10));
        let broken = json!({ "priority": 10, "rules": [{ "name": "r", "underlay": "dctpc" }] });
        let after = policy("a", 2, 1, broken);
        let why = "spec.rules[0].underlay: `dctpc` is not an underlay; the nearest is `dctcp`";
        let standings = choose(&[Arc::clone(&after)], &good(&[&before]));
        assert_eq!(told(&standings), [("a", Some(1), why.to_owned())]);
        assert_eq!(told(&choose(&[after], &LastGood::new())), [("a", None, why.to_owned())]);
    }

    #[test]
    fn another_object_of_the_same_name_has_no_past() {
        let before = policy("a", 1, 1, spec(10));
        let mut object = policy("a", 1, 9, json!({ "rules": 1 })).object.clone();
        object.uid = "another".into();
        let after = Arc::new(Reading::of(&object, &BTreeSet::new()));
        let standings = choose(&[after], &good(&[&before]));
        assert_eq!(told(&standings), [("a", None, "spec.rules: must be a list".to_owned())]);
    }

    #[test]
    fn of_one_priority_the_one_in_force_keeps_it_then_the_older_one() {
        let (old, young) = (policy("old", 1, 1, spec(10)), policy("young", 1, 2, spec(10)));
        let why = |holder: &str| {
            format!(
                "spec.priority: the VccPolicy `{holder}` has the priority 10 too, so nobody could tell \
                 which comes first: give one of them another"
            )
        };
        let both = [Arc::clone(&young), Arc::clone(&old)];
        let fresh = choose(&both, &LastGood::new());
        assert_eq!(told(&fresh), [("old", Some(1), String::new()), ("young", None, why("old"))]);
        let held = choose(&both, &good(&[&young]));
        assert_eq!(told(&held), [("young", Some(1), String::new()), ("old", None, why("young"))]);
        // An older one that moves to the priority of another stays where it was.
        let before = policy("old", 1, 1, spec(5));
        let moved = policy("old", 2, 1, spec(10));
        let held = choose(&[moved, Arc::clone(&young)], &good(&[&before, &young]));
        assert_eq!(
            told(&held),
            [("old", Some(1), why("young")), ("young", Some(1), String::new())]
        );
    }

    #[test]
    fn there_is_one_default() {
        let with_default =
            |priority| json!({ "priority": priority, "default": { "mode": "shadow" } });
        let (a, b) = (policy("a", 1, 1, with_default(1)), policy("b", 1, 2, with_default(2)));
        let why = "spec.default: the VccPolicy `a` has a `default` too, and there is one for all \
                   policies: leave it out of one of them";
        let standings = choose(&[a, b], &LastGood::new());
        assert_eq!(told(&standings), [("a", Some(1), String::new()), ("b", None, why.to_owned())]);
    }
}
