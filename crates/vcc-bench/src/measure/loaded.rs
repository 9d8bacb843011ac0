//! The cost of an underlay that is loaded at run time, next to a built-in one.

use vcc_engine::{Params, Underlay};
use vcc_port::{AttachOptions, Datapath, Program, Result};

use super::Subject;
use super::case::Case;
use super::cases::{FROM_GUEST, TO_GUEST};
use super::connection::*;
use super::harness::Harness;

pub(super) fn subject(underlay: Underlay) -> Result<Subject> {
    let params = Params::with(|p| p.underlay = underlay.number());
    let datapath = Datapath::load_with_yardsticks(None, &AttachOptions::from_params(params))?;
    establish(&datapath, PEER)?;
    let cases = vec![
        Case::new(
            "loaded_from_guest_data",
            "from_guest_data under the loaded underlay",
            Program::FromGuest,
            &data(PEER),
            FROM_GUEST,
        ),
        Case::new(
            "loaded_to_guest_ack",
            "to_guest_ack under the loaded underlay",
            Program::ToGuest,
            &ack(PEER, GUEST),
            TO_GUEST,
        ),
    ];
    Ok(Subject { harness: Harness::load(&datapath)?, datapath, cases })
}
