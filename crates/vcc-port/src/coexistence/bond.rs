//! Bonds and teams.

use super::Found;
use super::neighbours::{Link, Neighbours};
use crate::Result;

pub(super) const KINDS: &[&str] = &["bond", "team"];
const MEANING: &str = "\
    A segment passes both the member and the whole: with vcc at both, it would be translated \
    twice. A single member may see only a part of a connection.";

pub(super) fn check(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    let name = &at.device.name;
    let member = at.master().filter(|master| master.is_a(KINDS)).map(|master| {
        let found = format!("{name} is a member of {} ({})", master.name, kind(master));
        Found::warning(found, MEANING).remedy(format!("attach to {} and to no member", master.name))
    });
    let whole = at.link.is_a(KINDS).then(|| {
        let is_member = |link: &&Link| link.master == Some(at.link.index);
        let members: Vec<&str> =
            at.around.links.iter().filter(is_member).map(|link| link.name.as_str()).collect();
        let found = format!("{name} is a {} of {}", kind(&at.link), members.join(", "));
        Found::warning(found, MEANING).remedy("attach here and to no member, or to all members")
    });
    Ok(member.into_iter().chain(whole).collect())
}

fn kind(link: &Link) -> &str {
    link.kind.as_deref().unwrap_or_default()
}
