//! The cases for a datapath without a policy.

use vcc_engine::sys;
use vcc_frames::{Packet, payload};
use vcc_port::Program;

use super::case::{Case, Cursor, Next, Restore};
use super::connection::*;

/// Runs in a row of a case that leaves a clone of each frame to the kernel: it queues 1000
/// (net.core.netdev_max_backlog), and takes them after the last.
const CLONES_AT_ONCE: u32 = 500;

/// The data of each run follows that of the run before.
pub(super) const FROM_GUEST: Cursor = Cursor {
    seq: GUEST_ISN + 1,
    ack: PEER_ISN + 1,
    seq_step: PAYLOAD_BYTES,
    ack_step: 0,
    window: WINDOW,
};
pub(super) const TO_GUEST: Cursor = Cursor {
    seq: PEER_ISN + 1,
    ack: GUEST_ISN + 1 + PAYLOAD_BYTES,
    seq_step: 0,
    ack_step: PAYLOAD_BYTES,
    window: WINDOW,
};

/// The yardstick of the translating programs.
pub const REWRITER: &str = "rewriter";

/// In an order in which each round's ACKs acknowledge the data of the same round.
/// `tag`: that of the flow to [`AGREED`].
pub(super) fn cases(tag: [u8; 8]) -> Vec<Case> {
    let (from_guest, to_guest) = (FROM_GUEST, TO_GUEST);
    let standing = Cursor { seq_step: 0, ..from_guest };
    let due = Restore {
        tag,
        ect0_bytes: 0,
        pack_at: 0,
        flow_flags: sys::FLOW_REPORT_DUE | sys::FLOW_REPORT_CE,
        mark: 0,
    };
    let pack = Restore {
        // It starts at 1 (RFC 9768, 3.2.1), and the first report is of one segment.
        ect0_bytes: 1 + PAYLOAD_BYTES,
        pack_at: PACK_AT,
        flow_flags: 0,
        ..due
    };
    let clone = Restore { flow_flags: 0, mark: sys::FACK_MARK, ..due };
    vec![
        Case::new(
            "parse_only",
            "looking at a frame and leaving it alone",
            Program::ParseFromGuest,
            &data(PEER),
            from_guest,
        ),
        Case::new(
            "from_guest_data",
            "new data of an established connection, marked ECT(0)",
            Program::FromGuest,
            &data(PEER),
            from_guest,
        ),
        Case::new(
            "to_guest_ack",
            "an ACK of new data, its window rewritten",
            Program::ToGuest,
            &ack(PEER, GUEST),
            to_guest,
        ),
        Case {
            next: Next::Rewrite,
            ..Case::new(
                REWRITER,
                "an ACK's window rewritten without congestion control: for comparison",
                Program::ToGuest,
                &ack(PEER, GUEST),
                to_guest,
            )
        },
        Case::new(
            "flow_miss",
            "data of a connection whose SYN was not seen",
            Program::FromGuest,
            &data(STRANGER),
            from_guest,
        ),
        Case {
            restore: Some(Restore { flow_flags: 0, ..due }),
            next: Next::Clone,
            at_once: CLONES_AT_ONCE,
            ..Case::new(
                "clone_only",
                "a clone of new data, sent by the kernel: for comparison",
                Program::FromGuest,
                &data(AGREED),
                standing,
            )
        },
        Case {
            restore: Some(due),
            at_once: CLONES_AT_ONCE,
            ..Case::new(
                "fack",
                "new data, and a clone of it sent to become a FACK",
                Program::FromGuest,
                &data(AGREED),
                from_guest,
            )
        },
        Case {
            restore: Some(clone),
            ..Case::new(
                "fack_clone",
                "such a clone, cut to its header and made a FACK",
                Program::FromGuest,
                &Packet { payload: payload(8), ..ack(GUEST, AGREED) },
                standing,
            )
        },
        Case {
            restore: Some(pack),
            ..Case::new(
                "pack_consume",
                "an ACK of new data, its PACK read and cut off",
                Program::ToGuest,
                &ack_with_pack(AGREED, GUEST),
                to_guest,
            )
        },
        Case {
            restore: Some(due),
            ..Case::new(
                "pack_add",
                "an ACK of the guest, a PACK added",
                Program::FromGuest,
                &ack(GUEST, AGREED),
                standing,
            )
        },
        Case::new(
            "accecn_from_guest_data",
            "from_guest_data to a peer with AccECN",
            Program::FromGuest,
            &data(ACCURATE),
            from_guest,
        ),
        Case::new(
            "accecn_to_guest_ack",
            "to_guest_ack from there, without the option",
            Program::ToGuest,
            &accurate_ack(),
            to_guest,
        ),
    ]
}
