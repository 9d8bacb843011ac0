//! Which generation of each policy is in force: the newest that is fit to be and is in nobody's way,
//! else the last one that was.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::check::Reading;

/// A policy of the API server, and its state on a node.
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

/// Whether it is another one than that in force, or none is.
pub fn has_changed(last_good: &LastGood, reading: &Reading) -> bool {
    let last = last_good.get(&reading.object.name);
    last.is_none_or(|last| last.object != reading.object)
}

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
                "spec.priority: the VccPolicy `{holder}` also has the priority {priority}, so their \
                 order is undefined: change one of them"
            ));
        }
        if let Some(holder) = self.default.as_ref().filter(|_| reading.spec.default.is_some()) {
            return Err(format!(
                "spec.default: the VccPolicy `{holder}` also has a `default`, and all policies together \
                 have one: remove it from one of them"
            ));
        }
        self.priorities.insert(priority, name.clone());
        if reading.spec.default.is_some() {
            self.default = Some(name.clone());
        }
        Ok(())
    }
}

/// The policies whose newest generation is not to be, and why.
pub type Staying = BTreeMap<String, Vec<String>>;

/// Of policies that are in each other's way, those keep their place that are in force and have not
/// changed, then the older ones. One whose newest generation is not to be, because it is broken or by
/// `faulty`, stays where it was, and none that has changed takes that place. In the order of their
/// priorities; those that have no place come last.
pub fn choose(newest: &[Arc<Reading>], last_good: &LastGood, faulty: &Staying) -> Vec<Standing> {
    let last = |reading: &Reading| {
        let last = last_good.get(&reading.object.name)?;
        // Another object of the same name has no past.
        (last.object.uid == reading.object.uid && last.is_fit()).then_some(last)
    };
    let unfit = newest.iter().filter(|it| !it.is_fit());
    let mut staying = faulty.clone();
    staying.extend(unfit.map(|it| (it.object.name.clone(), it.errors.clone())));
    loop {
        let mut standings = attempt(newest, &last, &staying);
        // One that has changed took the place to which another had to go back.
        let driven_out = |it: &&Standing| {
            it.chosen.is_none()
                && last(&it.newest).is_some()
                && !staying.contains_key(&it.newest.object.name)
        };
        let more: Staying = standings
            .iter()
            .filter(driven_out)
            .map(|it| (it.newest.object.name.clone(), it.refused.clone()))
            .collect();
        if more.is_empty() {
            standings.sort_by_key(|standing| {
                let place = standing.chosen.as_ref().map(|chosen| chosen.spec.priority);
                (place.is_none(), place, standing.newest.object.name.clone())
            });
            return standings;
        }
        staying.extend(more);
    }
}

fn attempt<'a>(
    newest: &[Arc<Reading>],
    last: &impl Fn(&Reading) -> Option<&'a Arc<Reading>>,
    staying: &Staying,
) -> Vec<Standing> {
    let stays_as_it_was = |reading: &Reading| {
        let generation = last(reading).map(|last| last.object.generation);
        staying.contains_key(&reading.object.name) || generation == Some(reading.object.generation)
    };
    let mut order: Vec<&Arc<Reading>> = newest.iter().collect();
    order.sort_by_key(|reading| {
        (!stays_as_it_was(reading), reading.object.created, reading.object.name.clone())
    });
    let mut claims = Claims::default();
    let stand = |newest: &Arc<Reading>| {
        let mut refused = staying.get(&newest.object.name).cloned().unwrap_or_default();
        let mut chosen = None;
        if refused.is_empty() {
            match claims.claim(newest) {
                Ok(()) => chosen = Some(newest),
                Err(why) => refused.push(why),
            }
        }
        let chosen = chosen.or_else(|| last(newest).filter(|last| claims.claim(last).is_ok()));
        Standing { newest: newest.clone(), chosen: chosen.cloned(), refused }
    };
    order.into_iter().map(stand).collect()
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
        Arc::new(Reading::from_object(&object, &BTreeSet::new()))
    }

    fn choose(newest: &[Arc<Reading>], last_good: &LastGood) -> Vec<Standing> {
        super::choose(newest, last_good, &Staying::new())
    }

    fn good(readings: &[&Arc<Reading>]) -> LastGood {
        readings.iter().map(|it| (it.object.name.clone(), Arc::clone(it))).collect()
    }

    /// Name, generation in force, and the reasons why the newest is not.
    fn summarised(standings: &[Standing]) -> Vec<(&str, Option<i64>, String)> {
        let summarised = |standing: &'_ Standing| {
            let chosen = standing.chosen.as_ref().map(|chosen| chosen.object.generation);
            (chosen, standing.refused.join("; "))
        };
        standings
            .iter()
            .map(|standing| {
                let (chosen, refused) = summarised(standing);
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
        assert_eq!(summarised(&standings), expected);
    }

    #[test]
    fn of_a_broken_one_the_last_good_one_stays() {
        let before = policy("a", 1, 1, spec(10));
        let broken = json!({ "priority": 10, "rules": [{ "name": "r", "underlay": "dctpc" }] });
        let after = policy("a", 2, 1, broken);
        let why = "spec.rules[0].underlay: `dctpc` is not an underlay; the nearest is `dctcp`";
        let standings = choose(&[Arc::clone(&after)], &good(&[&before]));
        assert_eq!(summarised(&standings), [("a", Some(1), why.to_owned())]);
        assert_eq!(summarised(&choose(&[after], &LastGood::new())), [("a", None, why.to_owned())]);
    }

    #[test]
    fn another_object_of_the_same_name_has_no_past() {
        let before = policy("a", 1, 1, spec(10));
        let mut object = policy("a", 1, 9, json!({ "rules": 1 })).object.clone();
        object.uid = "another".into();
        let after = Arc::new(Reading::from_object(&object, &BTreeSet::new()));
        let standings = choose(&[after], &good(&[&before]));
        assert_eq!(summarised(&standings), [("a", None, "spec.rules: must be a list".to_owned())]);
    }

    #[test]
    fn of_one_priority_the_one_in_force_keeps_it_then_the_older_one() {
        let (old, young) = (policy("old", 1, 1, spec(10)), policy("young", 1, 2, spec(10)));
        let why = |holder: &str| {
            format!(
                "spec.priority: the VccPolicy `{holder}` also has the priority 10, so their \
                 order is undefined: change one of them"
            )
        };
        let both = [Arc::clone(&young), Arc::clone(&old)];
        let fresh = choose(&both, &LastGood::new());
        assert_eq!(
            summarised(&fresh),
            [("old", Some(1), String::new()), ("young", None, why("old"))]
        );
        let held = choose(&both, &good(&[&young]));
        assert_eq!(
            summarised(&held),
            [("young", Some(1), String::new()), ("old", None, why("young"))]
        );
        // An older one that moves to the priority of another stays where it was.
        let before = policy("old", 1, 1, spec(5));
        let moved = policy("old", 2, 1, spec(10));
        let held = choose(&[moved, Arc::clone(&young)], &good(&[&before, &young]));
        assert_eq!(
            summarised(&held),
            [("old", Some(1), why("young")), ("young", Some(1), String::new())]
        );
    }

    #[test]
    fn none_that_moves_takes_the_place_of_one_that_has_to_stay() {
        let broken = json!({ "priority": 10, "rules": [{ "name": "r", "underlay": "dctpc" }] });
        let held = |it: &[Standing]| -> Vec<(String, Option<i64>)> {
            it.iter()
                .map(|it| {
                    let generation = it.chosen.as_ref().map(|it| it.object.generation);
                    (it.newest.object.name.clone(), generation)
                })
                .collect()
        };
        let (a, b) = (policy("a", 1, 9, spec(10)), policy("b", 1, 1, spec(20)));
        let before = good(&[&a, &b]);
        let stays = [("a".to_owned(), Some(1)), ("b".to_owned(), Some(1))];
        // The young one is broken, or cannot go where it wants; the old one wants its place.
        let c = policy("c", 1, 1, spec(30));
        let moved = policy("b", 2, 1, spec(10));
        let now = choose(&[policy("a", 2, 9, broken), Arc::clone(&moved)], &before);
        assert_eq!(held(&now), stays);
        assert!(now[1].refused[0].contains("the VccPolicy `a` also has the priority 10"));
        let with_c = good(&[&a, &b, &c]);
        let now = choose(&[policy("a", 2, 9, spec(30)), Arc::clone(&moved), c], &with_c);
        assert_eq!(held(&now)[..2], stays);
        // Both may change places.
        let now = choose(&[policy("a", 2, 9, spec(20)), moved], &before);
        assert_eq!(held(&now), [("b".to_owned(), Some(2)), ("a".to_owned(), Some(2))]);
    }

    #[test]
    fn there_is_one_default() {
        let with_default =
            |priority| json!({ "priority": priority, "default": { "mode": "shadow" } });
        let (a, b) = (policy("a", 1, 1, with_default(1)), policy("b", 1, 2, with_default(2)));
        let why = "spec.default: the VccPolicy `a` also has a `default`, and all policies together \
                   have one: remove it from one of them";
        let standings = choose(&[a, b], &LastGood::new());
        assert_eq!(
            summarised(&standings),
            [("a", Some(1), String::new()), ("b", None, why.to_owned())]
        );
    }
}
