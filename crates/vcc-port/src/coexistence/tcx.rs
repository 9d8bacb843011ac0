//! Programs at the same TCX hooks.

use super::Found;
use super::neighbours::{Attached, Chain, Neighbours, names, place};
use crate::Result;

const ENDS: &str = "\
    A program before vcc that returns anything but TCX_NEXT (-1) ends the chain, and vcc does \
    not see that segment.";
const CILIUM_ENDS: &str = "\
    Cilium's programs end the chain for what they redirect, and vcc does not see those segments.";
const ENDED: &str = "A program before vcc ends the chain: vcc sees no segment of this direction.";

pub(super) fn look(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    Ok(at.chains.iter().map(|chain| judge(chain, at)).collect())
}

fn judge(chain: &Chain, at: &Neighbours<'_>) -> Found {
    let (before, after) = (chain.before(), chain.after());
    let found = format!("{}: {}", place(chain.hook), order(chain));
    match (before.is_empty(), after.is_empty()) {
        (true, true) if chain.ours.is_some() => Found::note(found, "vcc is alone at this hook."),
        (true, true) => Found::note(found, "vcc would be alone at this hook."),
        (true, false) => Found::note(
            found,
            "What runs after vcc sees what vcc wrote, and may drop or redirect it.",
        ),
        (false, _) if at.is_blind(chain.hook) => {
            Found::problem(found, ENDED).remedy(remedy(chain, &at.device.name))
        }
        (false, _) => {
            let cilium = before.iter().any(is_cilium);
            Found::warning(found, if cilium { CILIUM_ENDS } else { ENDS })
                .remedy(remedy(chain, &at.device.name))
        }
    }
}

fn order(chain: &Chain) -> String {
    let count = chain.programs.len();
    match chain.ours {
        Some(ours) => {
            format!("{}; vcc is number {} of {count}", names(&chain.programs), ours + 1)
        }
        None if count == 0 => "no program".into(),
        None => format!(
            "{}; vcc is not attached, and would be number {} of {}",
            names(&chain.programs),
            count + 1,
            count + 1
        ),
    }
}

/// Cilium's names for its programs at devices of endpoints and hosts.
fn is_cilium(program: &Attached) -> bool {
    program.name.as_deref().is_some_and(|name| name.starts_with("cil_"))
}

/// Who attaches without naming a place goes to the end of the chain.
fn remedy(chain: &Chain, device: &str) -> String {
    let others = names(chain.before());
    let first =
        if chain.ours.is_some() { String::new() } else { format!(" `vcc attach {device}`,") };
    format!(
        "if it ends the chain, detach {others},{first} and attach it again: it goes behind vcc \
         then"
    )
}
