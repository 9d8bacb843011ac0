//! Limits the size and number of policies that a node keeps.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::resource::PolicyObject;
use crate::status_size::a_few;
use crate::store::News;

/// As for a policy's file.
pub const MOST_BYTES: usize = 4 << 20;
/// Few policies with many rules are as good as many with few.
pub const MOST_POLICIES: usize = 256;

/// A summary keeps only a policy's rollout, but of every policy that some node may have in force.
/// Those have unique priorities, 0 to 1000.
const MOST_SUMMARIES: usize = 1001;

#[derive(Debug)]
pub struct Budget {
    /// Of those that are kept, by name.
    kept: HashMap<String, usize>,
    /// Places of those that a list has not named yet: its order gives nobody's place to another.
    reserved: HashMap<String, usize>,
    most_policies: usize,
}

impl Default for Budget {
    /// Of a node.
    fn default() -> Self {
        Self { kept: HashMap::new(), reserved: HashMap::new(), most_policies: MOST_POLICIES }
    }
}

impl Budget {
    /// Of the node that writes the policies' statuses.
    pub fn of_summaries() -> Self {
        Self { most_policies: MOST_SUMMARIES, ..Self::default() }
    }

    /// Of a node that has these already, and lists all of them.
    pub fn reserving<'a>(objects: impl Iterator<Item = &'a PolicyObject>) -> Self {
        let reserved = objects.map(|object| (object.name.clone(), bytes(object))).collect();
        Self { reserved, ..Self::default() }
    }

    /// The same news, of which specs are taken away that are too much.
    pub fn apply(&mut self, news: News<PolicyObject>) -> News<PolicyObject> {
        match &news {
            News::Begin => self.begin(),
            News::Gone(name) => self.remove(name),
            News::End => self.reserved.clear(),
            News::Listed(..) | News::Is(..) => {}
        }
        news.map(|_, mut object| {
            self.admit(&mut object);
            object
        })
    }

    /// A list begins again.
    fn begin(&mut self) {
        self.reserved.extend(self.kept.drain());
    }

    /// Takes the spec away if it is too much.
    pub fn admit(&mut self, object: &mut PolicyObject) {
        self.remove(&object.name);
        let bytes = bytes(object);
        let used: usize = self.kept.values().chain(self.reserved.values()).sum();
        let count = self.kept.len() + self.reserved.len();
        if used + bytes > MOST_BYTES || count >= self.most_policies {
            object.spec = Arc::new(Value::Null);
            object.is_omitted = true;
            return;
        }
        self.kept.insert(object.name.clone(), bytes);
    }

    fn remove(&mut self, name: &str) {
        self.kept.remove(name);
        self.reserved.remove(name);
    }

    /// The message about a policy beyond the limit.
    pub fn refusal() -> String {
        format!("spec: {}", not_read())
    }

    /// What a node says of those that were too much, if there are any.
    pub fn problem(names: &[String]) -> Option<String> {
        let few = a_few(names);
        match names.len() {
            0 => None,
            1 => Some(format!("the policy {few} is {}", not_read())),
            count => Some(format!("{count} policies ({few}) are {}", not_read())),
        }
    }
}

fn bytes(object: &PolicyObject) -> usize {
    object.spec.to_string().len()
}

fn not_read() -> String {
    format!(
        "not read, because a node reads at most {} MiB and {MOST_POLICIES} policies in total: delete \
         others, or merge rules",
        MOST_BYTES >> 20
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: String, bytes: usize) -> PolicyObject {
        let spec = Value::String("x".repeat(bytes));
        PolicyObject {
            name,
            uid: String::new(),
            generation: 1,
            created: 0,
            spec: spec.into(),
            is_omitted: false,
        }
    }

    #[test]
    fn thousands_and_megabytes_are_not_kept() {
        let mut budget = Budget::default();
        let mut omitted = |name: &str, bytes| {
            let mut object = object(name.to_owned(), bytes);
            budget.admit(&mut object);
            assert_eq!(object.is_omitted, object.spec.is_null());
            object.is_omitted
        };
        let large: Vec<bool> =
            (0..40).map(|number| omitted(&format!("p{number}"), 1 << 20)).collect();
        assert_eq!(large.iter().filter(|is_omitted| !**is_omitted).count(), 3);
        assert!(!omitted("p0", 10), "it has become smaller");
        assert!(!omitted("p5", 10));
        budget.begin();
        budget.apply(News::End);
        let small = (0..1000).filter(|number| {
            let mut object = object(format!("q{number}"), 10);
            budget.admit(&mut object);
            !object.is_omitted
        });
        assert_eq!(small.count(), MOST_POLICIES);
    }

    #[test]
    fn a_list_in_another_order_takes_nobody_s_place() {
        let is_kept = |news: News<PolicyObject>| match news {
            News::Listed(_, object) | News::Is(_, object) => !object.is_omitted,
            _ => unreachable!(),
        };
        let listed = |name: &str| News::Listed(name.to_owned(), object(name.to_owned(), 10));
        let is = |name: &str| News::Is(name.to_owned(), object(name.to_owned(), 10));
        let others: Vec<String> = (1..MOST_POLICIES).map(|it| format!("a{it:03}")).collect();
        let watched = || {
            let mut budget = Budget::default();
            assert!(is_kept(budget.apply(is("z"))));
            assert!(others.iter().all(|name| is_kept(budget.apply(is(name)))));
            assert!(!is_kept(budget.apply(is("b"))));
            budget
        };
        let in_force = object("z".to_owned(), 10);
        let restarted = Budget::reserving([&in_force].into_iter());
        for mut budget in [watched(), restarted] {
            // The first one is broken off.
            for lasts in [20, others.len()] {
                budget.apply(News::Begin);
                for name in &others[..lasts] {
                    assert!(is_kept(budget.apply(listed(name))));
                }
            }
            assert!(!is_kept(budget.apply(listed("b"))));
            assert!(is_kept(budget.apply(listed("z"))));
            budget.apply(News::End);
            budget.apply(News::Gone("z".to_owned()));
            assert!(is_kept(budget.apply(is("z"))), "made anew");
            budget.apply(News::Gone("z".to_owned()));
            assert!(is_kept(budget.apply(is("b"))));
        }
        // One that is not in the list has its place until the list ends.
        let mut budget = watched();
        budget.apply(News::Begin);
        assert!(others.iter().all(|name| is_kept(budget.apply(listed(name)))));
        assert!(!is_kept(budget.apply(listed("b"))));
        budget.apply(News::End);
        assert!(is_kept(budget.apply(is("b"))));
    }
}
