//! Names of ports. Devices of several network namespaces may have the same name.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use vcc_port::FlowId;

/// A connection among those of all ports; the port's part is from [`keys`].
pub type FlowKey = (Arc<str>, FlowId);

/// Each name, with the number of ports of that name before it.
pub fn numbered<'a>(devices: impl IntoIterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let number = |device| {
        let count = counts.entry(device).or_default();
        *count += 1;
        (device, *count - 1)
    };
    devices.into_iter().map(number).collect()
}

/// A key for each port: its name, with a number from the second port of that name on.
pub fn keys<'a>(devices: impl IntoIterator<Item = &'a str>) -> Vec<Arc<str>> {
    let key = |(device, number): (&str, usize)| match number {
        0 => device.into(),
        earlier => format!("{device} {}", earlier + 1).into(),
    };
    numbered(devices).into_iter().map(key).collect()
}

/// The order of names in which `tap2` is before `tap10`.
pub fn compare(one: &str, other: &str) -> Ordering {
    if one == other {
        return Ordering::Equal;
    }
    let (mut one_left, mut other_left) = (one, other);
    loop {
        let (one_part, one_rest) = part(one_left);
        let (other_part, other_rest) = part(other_left);
        let order = match (number(one_part), number(other_part)) {
            (Some(one), Some(other)) => one.cmp(&other),
            _ => one_part.cmp(other_part),
        };
        if order != Ordering::Equal || one_part.is_empty() {
            // `tap1` and `tap01` are two names.
            return order.then_with(|| one.cmp(other));
        }
        (one_left, other_left) = (one_rest, other_rest);
    }
}

/// The digits at the beginning, or what is in front of the first digit.
fn part(name: &str) -> (&str, &str) {
    let is_number = name.starts_with(|first: char| first.is_ascii_digit());
    let end = name.find(|other: char| other.is_ascii_digit() != is_number);
    name.split_at(end.unwrap_or(name.len()))
}

/// None: no number, or a longer one than a name of a device has.
fn number(part: &str) -> Option<u64> {
    part.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_ordered_as_numbers() {
        let ordered = [
            "", "7", "a", "eth0", "tap1", "tap01", "tap2", "tap2a", "tap10", "tap10.9", "tap10.10",
            "tapa",
        ];
        let mut names = ordered;
        names.reverse();
        names.sort_by(|one, other| compare(one, other));
        // Equal numbers are ordered as text.
        let expected = [
            "", "7", "a", "eth0", "tap01", "tap1", "tap2", "tap2a", "tap10", "tap10.9", "tap10.10",
            "tapa",
        ];
        assert_eq!(names, expected);
        assert_eq!(compare("v99999999999999999999999", "v1"), "9".cmp("1"));
    }

    #[test]
    fn ports_of_one_name_have_different_keys() {
        let keys = keys(["veth0", "tap7", "veth0", "veth0"]);
        let keys: Vec<&str> = keys.iter().map(|key| &**key).collect();
        assert_eq!(keys, ["veth0", "tap7", "veth0 2", "veth0 3"]);
    }
}
