//! Filters of a clsact or ingress qdisc, which run behind the TCX programs of the same hook.

use super::Found;
use super::neighbours::{
    Action, CLSACT_EGRESS, CLSACT_INGRESS, Filter, Link, Neighbours, filters, place,
};
use crate::tcx::Hook;
use crate::{Error, Result};

const HARMLESS: &str =
    "They run after vcc, unless a TCX program ends the chain, and see what vcc wrote.";
const HARMFUL: &str = "\
    They run after vcc: vcc counts a segment that they drop or redirect as sent or delivered, and \
    takes a drop for a loss beyond the port.";

pub(super) fn check(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    let read = |parent| {
        let filters = filters(at.device.ifindex, parent);
        filters.map_err(|e| Error::system(format!("list the filters of `{}`", at.device.name), e))
    };
    let has = |kinds: &[&str]| at.qdiscs().any(|qdisc| kinds.contains(&qdisc.kind.as_str()));
    let mut all = Vec::new();
    if has(&["clsact", "ingress"]) {
        all.extend(judge(Hook::FromGuest, &read(CLSACT_INGRESS)?, at));
    }
    if has(&["clsact"]) {
        all.extend(judge(Hook::ToGuest, &read(CLSACT_EGRESS)?, at));
    }
    Ok(all)
}

fn judge(hook: Hook, filters: &[Filter], at: &Neighbours<'_>) -> Option<Found> {
    if filters.is_empty() {
        return None;
    }
    let described: Vec<String> =
        filters.iter().map(|filter| describe(filter, &at.around.links)).collect();
    let found = format!("tc filters behind {}: {}", place(hook), described.join("; "));
    let harms = |action: &Action| action.drops || action.redirects_to.is_some();
    if !filters.iter().any(|filter| filter.actions.iter().any(harms)) {
        return Some(Found::note(found, HARMLESS));
    }
    let which = if matches!(hook, Hook::FromGuest) { "ingress" } else { "egress" };
    Some(Found::warning(found, HARMFUL).remedy(format!(
        "let them leave TCP alone (`tc filter show dev {} {which}`)",
        at.device.name
    )))
}

fn describe(filter: &Filter, links: &[Link]) -> String {
    let mut text = format!("{} with preference {}", filter.kind, filter.priority);
    if let Some((name, id)) = &filter.program {
        text += &format!(", program {name} (ID {id})");
    }
    for action in &filter.actions {
        text += &format!(", action {}", action.kind);
        if action.drops {
            text += " that drops";
        }
        if let Some(target) = action.redirects_to {
            let name = links.iter().find(|link| link.index == target).map(|link| &link.name);
            text += &format!(
                " that redirects to {}",
                name.map_or("a device that has gone", |name| name)
            );
        }
    }
    text
}
