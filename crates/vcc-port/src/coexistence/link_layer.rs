//! The device's link layer, which must be Ethernet.

use super::Found;
use super::neighbours::Neighbours;
use crate::{Error, Result};

pub(super) fn check(at: &Neighbours<'_>) -> Result<Vec<Found>> {
    match at.device.require_ethernet() {
        Err(error @ Error::NotEthernet { .. }) => {
            Ok(vec![Found::problem(error.to_string(), "vcc cannot attach to it.")])
        }
        other => other.map(|()| Vec::new()),
    }
}
