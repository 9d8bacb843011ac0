//! Tables by number: TCP ports, VLANs.

use super::sets::{EMPTY, Sets, toggle};
use crate::ranges::Ranges;
use crate::rule::Rule;

/// For each number below `count` the set of the rules that admit it. Sets change only where a
/// range begins or ends, so they are computed only there.
pub(super) fn by_number(
    count: usize,
    rules: &[Rule],
    admitted: impl Fn(&Rule) -> Ranges,
    sets: &mut Sets,
) -> Vec<u32> {
    let mut changes: Vec<(usize, usize)> = Vec::new();
    for (place, rule) in rules.iter().enumerate() {
        // Ranges do not touch, so that each end of one is a change.
        for (first, last) in admitted(rule).iter() {
            let below = |number: u128| usize::try_from(number).unwrap_or(count).min(count);
            changes.push((below(first), place));
            changes.push((below(last.saturating_add(1)), place));
        }
    }
    changes.sort_unstable();
    let mut table = Vec::with_capacity(count);
    let mut set = EMPTY;
    let mut changes = changes.into_iter().peekable();
    while table.len() < count {
        while let Some((_, place)) = changes.next_if(|(number, _)| *number <= table.len()) {
            toggle(&mut set, place);
        }
        let until = changes.peek().map_or(count, |(number, _)| *number);
        table.resize(until, sets.index_of(set));
    }
    table
}
