//! The cases, and the connections that they are measured on.

use vcc_engine::{Params, sys};
use vcc_port::Result;

use super::case::{Case, Event, SEG_BYTES, SEGS_PER_TURN};
use super::talk::Talk;

/// Segments of a super-segment of nearly 64 KiB.
const SUPER_SEGS: u32 = 44;

/// A connection, and the cases that take turns on it and leave it as it was.
pub(super) struct Subject {
    pub talk: Talk,
    pub cases: &'static [Case],
}

const DATA: &[Event] = &[Event::Data { segs: 1 }];
const ACK: &[Event] = &[Event::Ack { segs: 1 }];

const fn one_way(
    name: &'static str,
    what: &'static str,
    events: &'static [Event],
    leaving_segs: u32,
) -> Case {
    Case { name, what, events, times: SEGS_PER_TURN, leaving_segs, bulk: false }
}

const fn bulk(name: &'static str, what: &'static str, events: &'static [Event], segs: u32) -> Case {
    let times = SEGS_PER_TURN / segs;
    Case { name, what, events, times, leaving_segs: SEGS_PER_TURN, bulk: true }
}

const SNOOP: &[Case] = &[
    one_way(
        "snoop",
        "a segment to the guest under `receive = ring`, and half of an acknowledgement in its name",
        &[Event::Received { is_verified: true }],
        0,
    ),
    one_way(
        "snoop_sum",
        "the same, if the host's card has not verified its checksum",
        &[Event::Received { is_verified: false }],
        0,
    ),
];
const RECEIVED: Event = Event::Received { is_verified: true };
const BUFFER: &[Case] = &[Case {
    name: "buffer",
    what: "a segment to the guest under `receive = buffer` that its ring has no room for: it is stored, half \
           of it acknowledged, and given to the guest with its next turn",
    events: &[RECEIVED, RECEIVED, Event::Room { segs: 1024 }, Event::Room { segs: 0 }],
    times: SEGS_PER_TURN / 2,
    leaving_segs: 0,
    bulk: true,
}];
const WINDOW: &[Case] = &[
    one_way("pass", "new data under `act = \"window\"`", DATA, SEGS_PER_TURN),
    one_way("pass_ack", "an ACK under `act = \"window\"`", ACK, 0),
];
const AT_ONCE: &[Case] = &[
    one_way("at_once", "new data under `hold` that the windows admit", DATA, SEGS_PER_TURN),
    one_way("ack", "an ACK under `hold` while nothing is held", ACK, 0),
];
const HOLD: &[Case] = &[
    one_way("hold", "new data that is held", DATA, 0),
    one_way("release", "an ACK, and the held segment that it releases", ACK, SEGS_PER_TURN),
];
const BULK_EVENTS: &[Event] =
    &[Event::Data { segs: 1 }, Event::Data { segs: 1 }, Event::Ack { segs: 2 }];
const BULK: &[Case] =
    &[bulk("bulk", "single segments, all held, and an ACK for every two", BULK_EVENTS, 2)];
const RETRANSMIT: &[Case] = &[bulk(
    "retransmit",
    "the same under `retransmit`, with a copy of each until it is acknowledged",
    BULK_EVENTS,
    2,
)];
const SPLIT: &[Case] = &[bulk(
    "split",
    "the same under `split`, with an acknowledgement to the guest for every two",
    &[Event::Data { segs: 1 }, Event::Data { segs: 1 }, Event::Promise, Event::Ack { segs: 2 }],
    2,
)];
/// The ACKs of one super-segment for a receiver without GRO.
const SUPER_AND_ACKS: [Event; 1 + SUPER_SEGS as usize / 2] = {
    let mut events = [Event::Ack { segs: 2 }; 1 + SUPER_SEGS as usize / 2];
    events[0] = Event::Data { segs: SUPER_SEGS };
    events
};
const BULK_TSO: &[Case] = &[bulk(
    "bulk_tso",
    "super-segments of 44, all held, and an ACK for every two segments",
    &SUPER_AND_ACKS,
    SUPER_SEGS,
)];
const BULK_TSO_GRO: &[Case] = &[bulk(
    "bulk_tso_gro",
    "super-segments of 44, all held, and an ACK for each",
    &[Event::Data { segs: SUPER_SEGS }, Event::Ack { segs: SUPER_SEGS }],
    SUPER_SEGS,
)];

pub(super) fn subjects() -> Result<Vec<Subject>> {
    let single = Event::Data { segs: 1 };
    let large = Event::Data { segs: SUPER_SEGS };
    let acting = |act| sys::vcc_params { act: act as u8, ..Params::default().0 };
    let [window, hold, split] = [sys::ACT_WINDOW, sys::ACT_HOLD, sys::ACT_SPLIT].map(acting);
    let retransmit = sys::vcc_params { retransmit: 1, ..hold };
    let buffer = sys::vcc_params { receive: sys::RECEIVE_BUFFER as u8, ..window };
    let snoop = sys::vcc_params { receive: sys::RECEIVE_RING as u8, ..window };
    // What is sent before the first turn: nothing, the window, or as much again, which is held.
    let plan: [(sys::vcc_params, &[Case], Event, u32); 10] = [
        (window, WINDOW, single, 0),
        (hold, AT_ONCE, single, 0),
        (hold, HOLD, single, 1),
        (hold, BULK, single, 2),
        (retransmit, RETRANSMIT, single, 2),
        (split, SPLIT, single, 2),
        (hold, BULK_TSO, large, 2),
        (hold, BULK_TSO_GRO, large, 2),
        (snoop, SNOOP, single, 0),
        (buffer, BUFFER, Event::Room { segs: 0 }, 1),
    ];
    plan.into_iter()
        .map(|(params, cases, data, windows)| {
            // A window that stands still.
            let window_cap_bytes = SEGS_PER_TURN * SEG_BYTES;
            let params = Params(sys::vcc_params { window_cap_bytes, ..params });
            let mut talk = Talk::open(params, SEGS_PER_TURN)?;
            talk.send_ahead(data, windows * SEGS_PER_TURN);
            Ok(Subject { talk, cases })
        })
        .collect()
}
