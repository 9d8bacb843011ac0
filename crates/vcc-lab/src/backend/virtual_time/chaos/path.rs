//! What a path does to frames.

use super::dice::Dice;
use super::{CHANGES_FOR_NS, CHANGES_FROM_NS, MS};
use crate::scenario::Family;
use vcc_fabric::{Impairments, PathMtu};

const WHOLE_MTU_BYTES: u16 = 1500;
/// A guest does not survive a path that loses packets that are too big and never reports it. It does
/// survive one that does so for no longer than this.
const SILENT_MAX_NS: u64 = 600 * MS;

pub fn impairments(dice: &mut Dice) -> Impairments {
    Impairments {
        loss_permille: dice.below(30) as u32,
        duplicate_permille: dice.below(20) as u32,
        reorder_permille: dice.below(60) as u32,
        late_max_ns: dice.below(5 * MS),
        corrupt_permille: dice.below(10) as u32,
        spike_every_ns: (300 + dice.below(2_000)) * MS,
        spike_ns: dice.below(400 * MS),
    }
}

/// Half of all paths keep their MTU. A guest remembers the least for minutes (RFC 1191, 6.3), so an
/// MTU that follows a small one tests little.
pub fn path_mtus(dice: &mut Dice, family: Family) -> Vec<PathMtu> {
    // What every link has to carry (RFC 1122, 3.3.2; RFC 8200, 5).
    let least_bytes = match family {
        Family::Ipv4 => 576,
        Family::Ipv6 => 1280,
    };
    let changes = if dice.one_in(2) { 0 } else { 1 + dice.below(4) };
    let mut at_ns = CHANGES_FROM_NS;
    let mut mtus = Vec::new();
    let mut before_bytes = WHOLE_MTU_BYTES;
    for left in (1..=changes).rev() {
        at_ns += dice.below(CHANGES_FOR_NS / 2 / changes);
        // Small ones come late.
        let fewer = dice.below(u64::from(WHOLE_MTU_BYTES - least_bytes)) / left;
        let mtu_bytes = WHOLE_MTU_BYTES - fewer as u16;
        let answers = !dice.one_in(4);
        mtus.push(PathMtu { from_ns: at_ns, mtu_bytes, answers });
        if answers {
            before_bytes = mtu_bytes;
        } else {
            at_ns += dice.below(SILENT_MAX_NS);
            mtus.push(PathMtu { from_ns: at_ns, mtu_bytes: before_bytes, answers: true });
        }
    }
    mtus
}
