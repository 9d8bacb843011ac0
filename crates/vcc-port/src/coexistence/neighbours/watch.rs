//! The packets of a device and the runs of vcc's programs, counted for a while.

use std::thread;
use std::time::Duration;

use super::chain::Chain;
use super::link::{Link, Packets};
use crate::device::Device;
use crate::tcx::Hook;
use crate::{Error, Result, RunTimes, run_time};

/// The part of a direction that vcc sees.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Nothing of what came by.
    Blind,
    /// A part, or unknown: nothing came by, or nobody watched.
    Part,
    /// About as much as came by: the runs are counted for a little longer than the packets.
    Most,
}

pub(crate) struct Traffic {
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
    pub(crate) fn watch(
        device: &Device,
        chains: &[Chain; 2],
        time: Duration,
    ) -> Result<Option<Self>> {
        let ours = |chain: &Chain| chain.ours.map(|at| chain.programs[at].id);
        let [Some(from_guest), Some(to_guest)] = chains.each_ref().map(ours) else {
            return Ok(None);
        };
        let runs = || {
            let runs = |id| run_time::of_program(id, None).map(|time| time.runs);
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

    pub(crate) fn sight(&self, hook: Hook) -> Sight {
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
    pub(crate) fn packets(&self, hook: Hook) -> u64 {
        match hook {
            Hook::FromGuest => self.packets.received,
            Hook::ToGuest => self.packets.sent,
        }
    }
}
