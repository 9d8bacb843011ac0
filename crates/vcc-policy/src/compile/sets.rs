//! Sets of rules, each kept once.

use std::collections::HashMap;

use super::RuleSet;
use crate::MAX_RULES;
use crate::rule::Rule;

pub(super) const EMPTY: RuleSet = [0; MAX_RULES / 64];

#[derive(Default)]
pub(super) struct Sets {
    sets: Vec<RuleSet>,
    index: HashMap<RuleSet, u32>,
}

impl Sets {
    pub fn index_of(&mut self, set: RuleSet) -> u32 {
        *self.index.entry(set).or_insert_with(|| {
            self.sets.push(set);
            u32::try_from(self.sets.len() - 1).expect("fewer sets than table entries")
        })
    }

    pub fn into_vec(self) -> Vec<RuleSet> {
        self.sets
    }
}

pub(super) fn insert(set: &mut RuleSet, rule: usize) {
    set[rule / 64] |= 1 << (rule % 64);
}

pub(super) fn toggle(set: &mut RuleSet, rule: usize) {
    set[rule / 64] ^= 1 << (rule % 64);
}

pub(super) fn unite(set: &mut RuleSet, other: &RuleSet) {
    for (word, other) in set.iter_mut().zip(other) {
        *word |= other;
    }
}

pub(super) fn of_rules(rules: &[Rule], admits: impl Fn(&Rule) -> bool) -> RuleSet {
    let mut set = EMPTY;
    for (place, _) in rules.iter().enumerate().filter(|(_, rule)| admits(rule)) {
        insert(&mut set, place);
    }
    set
}

/// The lowest rule that is in all of them.
pub(super) fn first_in_all(sets: [&RuleSet; 6]) -> Option<usize> {
    (0..EMPTY.len()).find_map(|word| {
        let common = sets.iter().fold(u64::MAX, |bits, set| bits & set[word]);
        (common != 0).then(|| word * 64 + common.trailing_zeros() as usize)
    })
}
