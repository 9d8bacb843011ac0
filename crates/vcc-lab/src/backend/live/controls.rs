//! The congestion controls of the guests.

use crate::base::error::{Error, Result};
use crate::congestion_controls::CongestionControls;
use std::collections::BTreeSet;

/// Makes these available for as long as the value lives.
pub fn load(names: &BTreeSet<&str>) -> Result<CongestionControls> {
    let names: Vec<&str> = names.iter().copied().collect();
    CongestionControls::load(&names).map_err(|error| Error::Guests(error.to_string()))
}
