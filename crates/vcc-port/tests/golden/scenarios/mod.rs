//! Lives of connections, each over every shape, underlay and mode.

mod ecn;
mod handshakes;
mod loss;
mod resets;
mod transfer;

use vcc_engine::{Mode, Params, Underlay};

use crate::conversation::{Conversation, MSS_BYTES, Shape};
use crate::dual::DualRun;
use crate::setup::usually;

const MSS: u32 = MSS_BYTES as u32;

type Scenario = fn(&mut Conversation);

macro_rules! named {
    ($($file:ident::$scenario:ident,)*) => {
        &[$((stringify!($scenario), $file::$scenario),)*]
    };
}

const SCENARIOS: &[(&str, Scenario)] = named![
    transfer::transfer_and_close,
    handshakes::syns_without_options,
    handshakes::syns_without_some_options,
    ecn::syn_again_without_ecn,
    handshakes::repeated_handshake,
    handshakes::simultaneous_open,
    ecn::refused_ecn,
    ecn::reflected_ecn,
    ecn::guest_with_ecn,
    ecn::guest_with_accecn,
    ecn::peer_with_accecn,
    ecn::echoed_congestion,
    ecn::marked_data,
    loss::lost_segment_without_sack,
    loss::lost_segment_with_sack,
    loss::segments_that_overtook_each_other,
    loss::retransmissions,
    transfer::windows,
    transfer::odd_acknowledgements,
    resets::reset_by_guest,
    resets::reset_by_peer,
    resets::refused_connection,
    handshakes::port_reuse,
    handshakes::guest_opens_anew,
    handshakes::peer_opens_anew,
    transfer::sequence_wrap,
    transfer::super_segments,
];

fn run(underlay: &str, mode: Mode, feedback: bool) {
    let params = Params::with(|p| {
        p.underlay = underlay.parse::<Underlay>().expect("an underlay of the engine").number();
        p.mode = mode.number();
        p.feedback = feedback.into();
    });
    let mut run = DualRun::new(&usually(params));
    let mut guest_port = 10_000;
    for (name, scenario) in SCENARIOS {
        for shape in Shape::all() {
            guest_port += 1;
            run.doing = format!("{name}, {shape:?}");
            scenario(&mut Conversation::new(&mut run, shape, guest_port));
        }
    }
    run.assert_all();
}

macro_rules! every_scenario {
    ($($name:ident: $underlay:literal, $mode:ident, $feedback:literal;)*) => {
        $(#[test]
        fn $name() {
            if vcc_testing::can_attach() {
                run($underlay, Mode::$mode, $feedback);
            }
        })*
    };
}

every_scenario! {
    reno_ecn_enforced: "reno-ecn", Enforce, false;
    reno_ecn_with_offers: "reno-ecn", Enforce, true;
    reno_ecn_in_shadow: "reno-ecn", Shadow, true;
    reno_enforced: "reno", Enforce, true;
    reno_in_shadow: "reno", Shadow, true;
    cubic_enforced: "cubic", Enforce, true;
    dctcp_enforced: "dctcp", Enforce, false;
    dctcp_with_offers: "dctcp", Enforce, true;
    dctcp_in_shadow: "dctcp", Shadow, true;
    dctcp_priority_enforced: "dctcp-priority", Enforce, true;
    transparent_enforced: "transparent", Enforce, true;
    transparent_in_shadow: "transparent", Shadow, true;
}
