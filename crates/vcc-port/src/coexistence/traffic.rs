//! What passes the device, compared with what reaches vcc.

use std::thread;
use std::time::Duration;

use super::Found;
use super::link::{Link, Packets};
use super::neighbours::{Chain, Neighbours};
use crate::device::Device;
use crate::tcx::Hook;
use crate::{Error, Result, RunTimes, run_time};

/// What vcc sees of a direction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// Nothing of what came by.
    Blind,
    /// A part, or nobody knows: nothing came by, or nobody watched.
    Part,
    /// About as much as came by: the runs are counted for a little longer than the packets.
    Most,
}

pub(super) struct Traffic {
    pub time: Duration,
    pub packets: Packets,
    /// Of vcc's programs, by [`Hook::BOTH`].
    pub runs: [u64; 2],
}

/// For packets that were seen before the runs were read, and wait in the qdisc until the device
/// counts them.
const LEAD: Duration = Duration::from_millis(100);
/// For a packet that the device has counted to reach its hook.
const SETTLE: Duration = Duration::from_millis(20);

impl Traffic {
    /// None if vcc is not attached. The runs are counted from before the packets until after them,
    /// so that no packet lacks its run.
    pub(super) fn watch(
        device: &Device,
        chains: &[Chain; 2],
        time: Duration,
    ) -> Result<Option<Self>> {
        let ours = |chain: &Chain| chain.ours.map(|at| chain.programs[at].id);
        let [Some(from_guest), Some(to_guest)] = chains.each_ref().map(ours) else {
            return Ok(None);
        };
        let runs = || {
            let runs = |id| run_time::of_program(id).map(|time| time.runs);
            Ok::<_, Error>([runs(from_guest)?, runs(to_guest)?])
        };
        let packets = || {
            let read = Link::read(device.ifindex).map(|link| link.packets);
            read.map_err(|e| Error::system(format!("read device `{}`", device.name), e))
        };
        let _counting = RunTimes::count()?;
        let runs_before = runs()?;
        thread::sleep(LEAD);
        let packets_before = packets()?;
        thread::sleep(time);
        let packets_after = packets()?;
        thread::sleep(SETTLE);
        let runs_after = runs()?;
        Ok(Some(Self {
            time,
            packets: Packets {
                received: packets_after.received.saturating_sub(packets_before.received),
                sent: packets_after.sent.saturating_sub(packets_before.sent),
            },
            runs: [0, 1].map(|hook| runs_after[hook].saturating_sub(runs_before[hook])),
        }))
    }

    pub(super) fn sight(&self, hook: Hook) -> Sight {
        let (packets, runs) = (self.packets(hook), self.runs[hook as usize]);
        if packets == 0 {
            Sight::Part
        } else if runs == 0 {
            Sight::Blind
        } else if runs < packets {
            Sight::Part
        } else {
            Sight::Most
        }
    }

    /// What the device receives comes from the guest.
    fn packets(&self, hook: Hook) -> u64 {
        match hook {
            Hook::FromGuest => self.packets.received,
            Hook::ToGuest => self.packets.sent,
        }
    }
}

/// Fewer may be what a guest announces unasked, to which nobody answers.
const TALKS_PACKETS: u64 = 20;

/// Ways to a guest on which TCX egress is not.
const PAST_THE_HOOK: &str =
    "bpf_redirect_peer(), XDP_REDIRECT, AF_XDP or a packet socket with PACKET_QDISC_BYPASS";

pub(super) fn look(at: &Neighbours<'_>) -> Result<Vec<Found>> {
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
            "The guest sends, and nothing comes to it by this device: it may come past vcc, by \
             {PAST_THE_HOOK}."
        );
        return Found::warning(found, meaning).remedy("look again while the guest receives");
    }
    if packets == 0 {
        return Found::note(found, "Nothing came by, so nothing is known of this direction.")
            .remedy("look again while the guest talks");
    }
    match traffic.sight(hook) {
        Sight::Blind => {}
        Sight::Most => return Found::note(found, "vcc sees this direction."),
        Sight::Part => {
            let meaning = "vcc sees this direction: merged by GRO, or not all of it.";
            return Found::note(found, meaning);
        }
    }
    let problem =
        Found::problem(found, "vcc does not see this direction, so it translates nothing.");
    let suspect = match hook {
        _ if !at.chain(hook).before().is_empty() => "a TCX program before vcc",
        Hook::FromGuest if !at.link.xdp.is_empty() => "the XDP program",
        Hook::FromGuest => "somebody before the hook",
        Hook::ToGuest => PAST_THE_HOOK,
    };
    problem.remedy(format!("order or remove what takes the packets: {suspect}"))
}
