//! The detour of `vcc domain --device`.

use super::Found;
use super::neighbours::Neighbours;
use crate::Result;
use crate::claim::Claim;

const MEANING: &str = "\
    Each TCP frame passes a process of the host and comes back: a connection that could fill the \
    device reaches less than half of that (docs/performance.md, \"by the detour\"). All else stays in the \
    kernel.";

pub(super) fn check(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    let found = || Found::note("the detour of `vcc domain --device`".into(), MEANING);
    Ok(Claim::is_taken(&at.device).then(found).into_iter().collect())
}
