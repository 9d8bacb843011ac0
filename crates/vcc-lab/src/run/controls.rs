//! The congestion controls of the guests.

use crate::error::{Error, Result};
use crate::experiment::Case;
use std::collections::BTreeSet;
use vcc_guest::CongestionControls;

/// Those that the guests of these cases run. They are to be had as long as this lives.
pub(super) fn load(cases: &[&Case]) -> Result<CongestionControls> {
    let groups = cases.iter().flat_map(|case| &case.groups);
    let names: BTreeSet<&str> = groups
        .filter(|group| group.count.get() > 0)
        .map(|group| group.congestion_control.as_str())
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    CongestionControls::load(&names).map_err(|error| Error::Guests(error.to_string()))
}
