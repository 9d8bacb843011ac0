//! Limits the size and number of policies that a node keeps.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::resource::PolicyObject;
use crate::status_size::a_few;

/// As for a policy's file.
pub const MOST_BYTES: usize = 4 << 20;
/// Few policies with many rules are as good as many with few.
pub const MOST_POLICIES: usize = 256;

#[derive(Debug, Default)]
pub struct Budget {
    /// Of those that are kept, by name.
    kept: HashMap<String, usize>,
}

impl Budget {
    /// A list begins again.
    pub fn begin(&mut self) {
        self.kept.clear();
    }

    /// Takes the spec away if it is too much.
    pub fn admit(&mut self, object: &mut PolicyObject) {
        self.remove(&object.name);
        let bytes = object.spec.to_string().len();
        let used: usize = self.kept.values().sum();
        if used + bytes > MOST_BYTES || self.kept.len() >= MOST_POLICIES {
            object.spec = Arc::new(Value::Null);
            object.is_omitted = true;
            return;
        }
        self.kept.insert(object.name.clone(), bytes);
    }

    pub fn remove(&mut self, name: &str) {
        self.kept.remove(name);
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
        let small = (0..1000).filter(|number| {
            let mut object = object(format!("q{number}"), 10);
            budget.admit(&mut object);
            !object.is_omitted
        });
        assert_eq!(small.count(), MOST_POLICIES);
    }
}
