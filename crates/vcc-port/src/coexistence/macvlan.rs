//! Guests with a macvlan or ipvlan on top of the device.

use super::Found;
use super::neighbours::{Link, Neighbours};
use crate::Result;

pub(super) fn check(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    let is_upper = |link: &&Link| link.is_on_top() && link.lower == Some(at.link.index);
    let uppers: Vec<String> = at
        .around
        .links
        .iter()
        .filter(is_upper)
        .map(|link| format!("{} ({})", link.name, link.kind.as_deref().unwrap_or_default()))
        .collect();
    if uppers.is_empty() {
        return Ok(Vec::new());
    }
    let found = format!("on top of {}: {}", at.device.name, uppers.join(", "));
    let meaning = "\
        Their guests send out of this device and receive by it, so each end would be taken for \
        the other; and what they send to each other does not pass it.";
    Ok(vec![
        Found::warning(found, meaning)
            .remedy("give the guests a veth or tap, and attach to its host side"),
    ])
}
