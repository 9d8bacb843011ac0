//! Which measurement comes next.

use std::time::Duration;

use super::item::Item;
use crate::time::minutes;

/// The shortest that fits into what is left of the time; after all of those with a known time, those
/// with an unknown one.
pub fn next<'a>(due: &[&'a Item], left: Option<Duration>) -> Option<&'a Item> {
    let fits = |it: &&&Item| match (left, it.time.seconds()) {
        (None, _) => true,
        (Some(left), Some(seconds)) => seconds <= left.as_secs_f64(),
        (Some(left), None) => !left.is_zero(),
    };
    let fitting = due.iter().filter(fits);
    fitting.min_by(|a, b| a.time.order().total_cmp(&b.time.order())).copied()
}

/// How many these are, and how long they take.
pub fn remaining(due: &[&Item]) -> String {
    let known: Vec<f64> = due.iter().filter_map(|it| it.time.seconds()).collect();
    match (known.len(), due.len() - known.len()) {
        (0, 0) => "nothing".into(),
        (0, unknown) => format!("{unknown}, in unknown time"),
        (_, 0) => format!("{}, in {}", due.len(), minutes(known.iter().sum())),
        (_, unknown) => {
            let time = minutes(known.iter().sum());
            format!("{}, in {time} and the unknown time of {unknown} of them", due.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::item::Step;
    use super::*;
    use crate::time::Time;

    fn item(name: &str, time: Time) -> Item {
        Item {
            name: name.into(),
            arguments: Vec::new(),
            age: None,
            outcome: None,
            time,
            step: Step::Measure,
            is_virtual: false,
        }
    }

    /// Names in the order in which they are measured, each in its time.
    fn order(items: &[Item], mut left: Option<u64>, unknown_s: u64) -> String {
        let mut due: Vec<&Item> = items.iter().collect();
        let mut names = Vec::new();
        while let Some(item) = next(&due, left.map(Duration::from_secs)) {
            due.retain(|it| it.name != item.name);
            names.push(item.name.as_str());
            let took_s = item.time.seconds().map_or(unknown_s, |seconds| seconds as u64);
            left = left.map(|left| left.saturating_sub(took_s));
        }
        names.join(" ")
    }

    #[test]
    fn the_shortest_come_first_and_unknown_ones_last() {
        let items = [
            item("long", Time::Measured(5000.0)),
            item("heavy", Time::Unknown { virtual_s: 60.0 }),
            item("short", Time::Measured(60.0)),
            item("light", Time::Unknown { virtual_s: 2.0 }),
            item("live", Time::Scheduled(600.0)),
        ];
        assert_eq!(order(&items, None, 0), "short live long light heavy");
        assert_eq!(order(&items, Some(90 * 60), 100), "short live light heavy");
        assert_eq!(order(&items, Some(1000), 340), "short live light");
        assert_eq!(order(&items, Some(100), 100), "short light");
        let due: Vec<&Item> = items.iter().collect();
        let text = "5, in 94 min and the unknown time of 2 of them";
        assert_eq!(remaining(&due), text);
        assert_eq!(remaining(&due[..1]), "1, in 83 min");
        assert_eq!(remaining(&due[1..2]), "1, in unknown time");
        assert_eq!(remaining(&[]), "nothing");
    }
}
