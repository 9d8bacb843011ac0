//! Programs at the same TCX hooks.

use super::Found;
use super::neighbours::{Attached, Chain, Neighbours, Sight, names, place};
use crate::Result;
use crate::claim::Claim;

const ENDS: &str = "\
    A program before vcc that returns anything but TCX_NEXT (-1) ends the chain, and vcc does \
    not see that segment.";
const CILIUM_ENDS: &str = "\
    Cilium's programs end the chain for what they redirect, and vcc does not see those segments.";
const LETS_PASS: &str =
    "vcc ran about as often as packets passed, so what runs before it hid few of them, if any.";
const ENDED: &str = "A program before vcc ends the chain: vcc sees no segment of this direction.";

const BEHIND_THE_DETOUR: &str = "\
    The detour goes before all others: what it takes comes back behind itself, so the others see \
    each frame once.";

pub(super) fn check(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    if Claim::is_taken(&at.device) {
        let found = |chain: &Chain| format!("{}: {}", place(chain.hook), names(&chain.programs));
        let note = |chain| Found::note(found(chain), BEHIND_THE_DETOUR);
        return Ok(at.chains.iter().map(note).collect());
    }
    Ok(at.chains.iter().map(|chain| judge(chain, at)).collect())
}

fn judge(chain: &Chain, at: &Neighbours<'_>) -> Found {
    let (before, after) = (chain.before(), chain.after());
    let found = format!("{}: {}", place(chain.hook), order(chain));
    if before.is_empty() {
        return Found::note(
            found,
            match after.is_empty() {
                true if chain.ours.is_some() => "vcc is alone at this hook.",
                true => "vcc would be alone at this hook.",
                false => "What runs after vcc sees what vcc wrote, and may drop or redirect it.",
            },
        );
    }
    let ends = if before.iter().any(is_cilium) { CILIUM_ENDS } else { ENDS };
    let found = match at.sight(chain.hook) {
        Sight::Most => return Found::note(found, LETS_PASS),
        Sight::Part => Found::warning(found, ends),
        Sight::Blind => Found::problem(found, ENDED),
    };
    found.remedy(remedy(chain, &at.device.name))
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

/// vcc goes to the end of the chain unless its order is another.
fn remedy(chain: &Chain, device: &str) -> String {
    let others = names(chain.before());
    let (apply, attach) = match chain.ours {
        Some(_) => (
            format!(", `vcc detach --wait {device}` and `vcc policy apply`"),
            format!("`vcc detach --wait {device}`, then `vcc attach --order first {device}`"),
        ),
        None => (String::new(), format!("`vcc attach --order first {device}`")),
    };
    format!(
        "if {others} ends the chain, vcc has to go before it: under a policy, order = \"first\" in the \
         [[ports]] of {device}{apply}; without one, {attach}"
    )
}
