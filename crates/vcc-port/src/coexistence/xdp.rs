//! XDP programs on the device, which run before a frame reaches TCX.

use super::Found;
use super::neighbours::{Attached, Neighbours, Sight};
use crate::Result;
use crate::tcx::Hook;

pub(super) fn check(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    let found = at.link.xdp.iter().map(|(mode, id)| {
        let found = format!("{mode} XDP: {}", Attached::from_id(*id));
        let found = match at.sight(Hook::FromGuest) {
            Sight::Most => {
                return Found::note(
                    found,
                    "vcc ran about as often as frames passed, so it hid few of them, if any.",
                );
            }
            Sight::Part => Found::warning(
                found,
                "It runs on the guest's frames before vcc does: what it drops, sends back \
                 (XDP_TX) or redirects, vcc does not see.",
            ),
            Sight::Blind => {
                Found::problem(found, "It takes the guest's frames before vcc sees them.")
            }
        };
        found.remedy(format!(
            "let it pass TCP (XDP_PASS), or remove it: `ip link set dev {} xdp off`",
            at.device.name
        ))
    });
    Ok(found.collect())
}
