//! The packets that pass the device, compared with those that reach vcc.

use super::Found;
use super::neighbours::{Neighbours, Sight, Traffic};
use crate::Result;
use crate::tcx::Hook;

/// Fewer may be unsolicited announcements of a guest, to which nobody answers.
const TALKS_PACKETS: u64 = 20;

/// Ways to a guest on which TCX egress is not.
const PAST_THE_HOOK: &str =
    "bpf_redirect_peer(), XDP_REDIRECT, AF_XDP or a packet socket with PACKET_QDISC_BYPASS";

pub(super) fn check(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    Ok(match &at.traffic {
        None => Vec::new(),
        Some(Ok(traffic)) => Hook::BOTH.map(|hook| judge(traffic, hook, at)).into(),
        Some(Err(error)) => {
            let meaning = "It is unknown whether vcc sees all that passes.";
            vec![Found::warning(error.to_string(), meaning)]
        }
    })
}

fn judge(traffic: &Traffic, hook: Hook, at: &Neighbours<'_>) -> Found {
    let (packets, runs) = (traffic.packets(hook), traffic.runs[hook as usize]);
    let direction = match hook {
        Hook::FromGuest => "from the guest",
        Hook::ToGuest => "to the guest",
    };
    let seconds = traffic.time.as_secs_f64();
    let found = format!("{direction} in {seconds:.1} s: packets {packets}, runs of vcc {runs}");
    if packets == 0 && matches!(hook, Hook::ToGuest) && traffic.packets.received >= TALKS_PACKETS {
        let meaning = format!(
            "The guest sends, but no packet reached it through this device: packets to it may bypass vcc \
             through {PAST_THE_HOOK}."
        );
        return Found::warning(found, meaning).remedy("look again while the guest receives");
    }
    if packets == 0 {
        return Found::note(
            found,
            "No packet came in this direction, so this check has no result.",
        )
        .remedy("look again while the guest talks");
    }
    match traffic.sight(hook) {
        Sight::Blind => {}
        Sight::Most => return Found::note(found, "vcc sees this direction."),
        Sight::Part => {
            let meaning =
                "vcc sees this direction: GRO has merged packets, or vcc does not see all of them.";
            return Found::note(found, meaning);
        }
    }
    let problem =
        Found::problem(found, "vcc does not see this direction, so it translates nothing.");
    let suspect = match hook {
        _ if !at.chain(hook).before().is_empty() => "a TCX program before vcc",
        Hook::FromGuest if !at.link.xdp.is_empty() => "the XDP program",
        Hook::FromGuest => "an unknown program before the hook",
        Hook::ToGuest => PAST_THE_HOOK,
    };
    problem.remedy(format!("reorder or remove what takes the packets: {suspect}"))
}
