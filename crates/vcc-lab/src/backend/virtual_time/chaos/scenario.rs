//! What a seed makes.

use super::dice::Dice;
use super::path::{impairments, path_mtus};
use super::ports::{Memory, changes, params};
use super::{GUESTS, MS, TRANSFERS};
use crate::scenario::{
    Chaos, Core, Family, Flow, Scenario, Scheduler, Share, Translation, Vcpu, made,
};
use std::sync::Arc;
use vcc_domain::BufferSpec;
use vcc_engine::Mode;
use vcc_fabric::AnyQueue;
use vcc_traffic::{Pattern, Transfers, Until};

const TRANSFER_BYTES: u64 = 150_000;
/// A file may take several timeouts.
const MEASURED_NS: u64 = 120_000 * MS;

/// A guest of each congestion control sends files to one receiver, 100 Mbit/s. Ports remember what
/// they have promised in the memory of their host.
pub fn scenario(seed: u64, with_vcc: bool) -> (Scenario, Vec<Arc<Memory>>) {
    let dice = &mut Dice::new(seed);
    let mut scenario = made::scenario();
    let receiver = GUESTS.len();
    scenario.network.guests = GUESTS.len();
    scenario.network.rate_bps = 100_000_000;
    scenario.network.edge_rate_bps = 1_000_000_000;
    scenario.network.delay_ns = (20 + dice.below(2_000)) * 1_000;
    scenario.network.queue = AnyQueue::edge();
    scenario.family = if dice.one_in(3) { Family::Ipv6 } else { Family::Ipv4 };
    scenario.sack = dice.one_in(2);
    scenario.measured_ns = MEASURED_NS;
    let transfers = Transfers {
        bytes: TRANSFER_BYTES.try_into().expect("some"),
        count: TRANSFERS.try_into().expect("some"),
        every_ms: None,
        until: Until::Ended,
    };
    scenario.guests = GUESTS
        .map(|congestion_control| {
            let mut guest = made::guest();
            guest.congestion_control = congestion_control.into();
            guest.ecn = dice.one_in(3);
            guest.tso = dice.one_in(2);
            guest.tcp.timestamps = dice.one_in(4).then_some(false);
            guest
        })
        .into();
    scenario.flows = (0..GUESTS.len())
        .map(|sender| Flow {
            sender,
            receiver,
            pattern: Pattern::Transfers(transfers),
            ..made::flow()
        })
        .collect();
    share_cores(dice, &mut scenario);
    let mut treated = || {
        let mut params = params(dice);
        // The lab compares guests that begin in shadow mode, and samples them every 100 us for that.
        params.0.mode = Mode::Enforce.number();
        with_vcc.then(|| Translation { params, share: None, buffer: BufferSpec::default() })
    };
    scenario.guests.iter_mut().for_each(|guest| guest.translation = treated());
    scenario.receivers.translation = treated();
    let (changes, memories) = changes(dice, GUESTS.len() + 1);
    scenario.chaos = Chaos {
        impairments: Some(impairments(dice)),
        path_mtus: path_mtus(dice, scenario.family),
        changes,
    };
    (scenario, memories)
}

/// In some, the receiver and one of the guests run in turns with others, which `receive` is for.
fn share_cores(dice: &mut Dice, scenario: &mut Scenario) {
    scenario.receivers.backlog_segs = dice.below(500) as u32;
    let whose = dice.below(GUESTS.len() as u64) as usize;
    if !dice.one_in(3) {
        return;
    }
    let slice_ns = (2 + dice.below(15)) * MS;
    let share = |percent| Share { percent, period_ns: slice_ns };
    for core in 0..2 {
        scenario.cores.push(Core {
            scheduler: Scheduler::RoundRobin { slice_ns },
            background: vec![share(100); 1 + dice.below(2) as usize],
            wakeup_ns: 0,
            driver_ns: None,
        });
        let vcpu = Some(Vcpu { core, load: share(0) });
        match core {
            0 => scenario.receivers.vcpu = vcpu,
            _ => scenario.guests[whose].vcpu = vcpu,
        }
    }
}
