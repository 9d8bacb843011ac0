//! The order of flows.

use std::cmp::Ordering;

use crate::column::Column;
use crate::flow::FlowView;
use crate::names::{self, FlowKey};

#[derive(Clone, Copy)]
pub struct Sort {
    /// None: by place, that is by port, guest and peer.
    pub by: Option<&'static Column>,
    pub is_descending: bool,
}

impl Sort {
    /// The sort name of no column: by port, guest and peer.
    pub const PLACE: &str = "place";

    /// The largest number first; text from A to Z.
    pub fn natural(by: Option<&'static Column>) -> Self {
        Self { by, is_descending: by.is_some_and(|column| !column.unit.is_text()) }
    }

    pub fn reversed(self) -> Self {
        Self { is_descending: !self.is_descending, ..self }
    }

    /// Whether it is the opposite of the natural order.
    pub fn is_reversed(&self) -> bool {
        self.is_descending != Self::natural(self.by).is_descending
    }

    pub fn name(&self) -> &'static str {
        self.by.and_then(|column| column.sort).unwrap_or(Self::PLACE)
    }

    /// Unknown values are last in both directions. Flows that are equal are ordered by their place.
    pub fn compare(&self, a: &FlowView, b: &FlowView) -> Ordering {
        let by_place = by_place(&a.key, &b.key);
        match self.by {
            Some(column) => column.compare(a, b, self.is_descending).then(by_place),
            None if self.is_descending => by_place.reverse(),
            None => by_place,
        }
    }

    pub fn apply(&self, flows: &mut [FlowView]) {
        if self.by.is_some() {
            flows.sort_by(|a, b| self.compare(a, b));
            return;
        }
        // The keys are a fifth of the flows: of a million, fewer bytes move.
        flows.sort_by_cached_key(|flow| Place(flow.key.clone()));
        if self.is_descending {
            flows.reverse();
        }
    }
}

fn by_place(a: &FlowKey, b: &FlowKey) -> Ordering {
    // Most neighbours are of one port.
    let by_port = if a.0 == b.0 { Ordering::Equal } else { names::compare(&a.0, &b.0) };
    by_port.then_with(|| a.1.cmp(&b.1))
}

/// A key that is ordered by place.
#[derive(PartialEq, Eq)]
struct Place(FlowKey);

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        by_place(&self.0, &other.0)
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{key_of, sortable};
    use crate::rates::Rates;
    use crate::testing::flow;

    fn order(name: &str, is_reversed: bool) -> Vec<u16> {
        let with = |port: u16, rate: Option<f64>| {
            let mut flow = flow(&format!("192.0.2.1:{port}"), "192.0.2.2:80");
            flow.rates = rate.map(|rate| Rates { goodput_bits_per_s: rate, ..Default::default() });
            flow
        };
        let mut flows =
            [with(3, None), with(2, Some(7.0)), with(1, Some(5.0)), with(10, Some(7.0))];
        let column = sortable().find(|(sort, _)| *sort == name).map(|(_, column)| column);
        let natural = Sort::natural(column);
        let sort = if is_reversed { natural.reversed() } else { natural };
        assert_eq!((sort.name(), sort.is_reversed()), (name, is_reversed));
        sort.apply(&mut flows);
        flows.iter().map(|flow| flow.id().guest.port()).collect()
    }

    #[test]
    fn largest_first_unknown_last_and_ends_as_numbers() {
        assert_eq!(order("place", false), [1, 2, 3, 10]);
        assert_eq!(order("place", true), [10, 3, 2, 1]);
        assert_eq!(order("rate", false), [2, 10, 1, 3]);
        assert_eq!(order("rate", true), [1, 2, 10, 3]);
        assert_eq!(order("guest", false), [1, 2, 3, 10]);
    }

    #[test]
    fn numbers_in_text_are_ordered_as_numbers() {
        let at = |port: &str| {
            let mut flow = flow("192.0.2.1:1", "192.0.2.2:80");
            flow.port = port.into();
            flow
        };
        let mut flows = ["tap10", "tap2", "tap1"].map(at);
        Sort::natural(key_of("port")).apply(&mut flows);
        assert_eq!(flows.map(|flow| flow.port.to_string()), ["tap1", "tap2", "tap10"]);
    }

    #[test]
    fn no_two_columns_have_one_name() {
        let mut names: Vec<&str> = sortable().map(|(name, _)| name).collect();
        names.push(Sort::PLACE);
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
